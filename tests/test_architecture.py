"""Rules on the source tree that the import contracts in pyproject.toml do not express."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
MODULES = sorted((SRC / "certimap").rglob("*.py"))
VERIFICATION = [path for path in MODULES if path.relative_to(SRC).with_suffix("").parts[1] == "verification"]

MAX_LINES = 400
VERIFICATION_MAY_IMPORT = {"verification", "model", "graph", "certificate", "results"}


def module_id(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def own_imports(tree: ast.AST, path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute name) of each import from certimap found in `tree`."""
    package = path.relative_to(SRC).parent.parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            anchor = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*anchor, *([node.module] if node.module else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "certimap":
                yield node.lineno, name


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_module_is_short(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_LINES, f"{module_id(path)} has {lines} lines; split it (at most {MAX_LINES})"


@pytest.mark.parametrize("path", MODULES, ids=module_id)
def test_own_modules_are_imported_at_the_top(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden = sorted({found for function in functions for found in own_imports(function, path)})
    assert not hidden, f"imports inside functions of {module_id(path)}: {hidden}"


@pytest.mark.parametrize("path", VERIFICATION, ids=module_id)
def test_verification_imports_only_what_it_checks(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    foreign = [
        (line, name)
        for line, name in own_imports(tree, path)
        if name.partition(".")[2].split(".")[0] not in VERIFICATION_MAY_IMPORT
    ]
    assert not foreign, f"{module_id(path)} imports {foreign}"


def test_relative_imports_are_resolved() -> None:
    path = SRC / "certimap" / "engines" / "tree.py"
    tree = ast.parse("from . import ledger\nfrom ..graph import Graph\nimport numpy\nimport certimap.model")
    assert [name for _, name in own_imports(tree, path)] == [
        "certimap.engines.ledger",
        "certimap.graph.Graph",
        "certimap.model",
    ]
