"""Every Python block of the documentation runs, in order, in one namespace per file."""

import re
from pathlib import Path

import pytest

from certimap.oracles import protocol
from certimap.verification import conjugates

ROOT = Path(__file__).parents[1]
PAGES = [page for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if page.exists()]
PAGES += sorted((ROOT / "docs").glob("*.md"))

LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"^(?P<skip><!-- no-run -->\s*\n)?```python[^\n]*\n(?P<code>.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return (number of lines before the code, code) of each block that is to be run."""
    return [
        (text.count("\n", 0, match.start("code")), match["code"]) for match in BLOCK.finditer(text) if not match["skip"]
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Examples write files, which must not land in the working tree.
    monkeypatch.chdir(tmp_path)
    # A page may register a family of its own.
    monkeypatch.setattr(protocol, "_REGISTRY", dict(protocol._REGISTRY))
    monkeypatch.setattr(conjugates, "FAMILIES", dict(conjugates.FAMILIES))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for lines_before, code in python_blocks(page.read_text(encoding="utf-8")):
        # Leading blank lines make a traceback point at the line of the page.
        exec(compile("\n" * lines_before + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    broken = [target for target in LINK.findall(text) if not (page.parent / target).exists()]
    assert not broken
    if page.parent.name == "docs" and page.name != "index.md":
        assert f"({page.name})" in (page.parent / "index.md").read_text(encoding="utf-8"), "not in the contents"


def test_blocks_are_found_and_skipped() -> None:
    run, skipped = "```python\nx = 1\n```\n", "<!-- no-run -->\n```python\ny\n```\n"
    text = f"a\n{run}\n{skipped}```sh\nls\n```\n{run}"
    assert python_blocks(text) == [(2, "x = 1\n"), (13, "x = 1\n")]
