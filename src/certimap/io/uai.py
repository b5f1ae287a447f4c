"""The UAI competition format: networks (.uai), evidence (.evid) and solutions (.sol).

A network file is a stream of words: MARKOV or BAYES, the number of variables, their sizes, the number of tables, the
scope of every table, and every table's size and entries (the last variable of the scope runs fastest). Entries are
probabilities or potentials p >= 0; the model takes log p, and excludes states with p = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.io.source import NumberStream, read_text
from certimap.io.tabulate import tabulate
from certimap.model.constraints import fix
from certimap.model.constructors import table
from certimap.model.errors import ModelError
from certimap.model.expressions import LinearExpression, Variable
from certimap.model.model import Model

Evidence = str | Path | Mapping[str, int]

MAX_ENTRIES = 100_000_000  # of one table: a declared size beyond this is a damaged file
LOG_SMALLEST, LOG_LARGEST = -708.0, 709.0  # exp of these is a normal double; below, entries would lose digits


def read_uai(path: str | Path, evidence: Evidence | None = None) -> Model:
    """Read a MARKOV or BAYES network as a model with categorical variables x0, x1, ...

    `evidence` is an evidence file or a mapping from variable names to states; it becomes constraints,
    so that impossible evidence is reported by name.
    """
    text = read_text(path)
    kind = text.split(None, 1)[0] if text.strip() else ""
    if kind not in ("MARKOV", "BAYES"):
        raise ModelError(f"{path}: line 1: expected MARKOV or BAYES, got {kind!r}")
    stream = NumberStream(path, text, skip=1)
    n = stream.count("the number of variables", 1)
    sizes = stream.counts(n, "the sizes of the variables", 1)
    model = Model()
    variables: list[Variable] = [model.categorical(f"x{i}", size) for i, size in enumerate(sizes)]
    scopes = _read_scopes(stream, n)
    for t, scope in enumerate(scopes):
        _add_table(model, stream, [variables[i] for i in scope], f"table {t}")
    stream.finish(f"the {len(scopes)} tables need")
    if evidence is not None:
        known = evidence if isinstance(evidence, Mapping) else _read_evidence(evidence)
        for name, state in known.items():
            if name not in model.variables:
                raise ModelError(f"evidence: no variable is called {name!r}; the network has x0 .. x{n - 1}")
            model.constrain(fix(model.variables[name], state).named(f"evidence {name} = {state}"))
    return model


def write_uai(model: Model, path: str | Path) -> None:
    """Write a model of discrete variables as a MARKOV network; constraints become tables of ones and zeros.

    Variables are numbered in the order of declaration and states in their own order; names are not kept. Every factor
    or constraint that is no table is enumerated over its variables, which needs small scopes.
    """
    scopes, tables = [], []
    position = {name: i for i, name in enumerate(model.variables)}
    for label, scope, log_values in tabulate(model):
        finite = log_values[log_values > -np.inf]
        if finite.size and (finite.min() < LOG_SMALLEST or finite.max() > LOG_LARGEST):
            raise ModelError(
                f"{label}: log-values span [{finite.min():g}, {finite.max():g}]; a UAI file stores exp of them, "
                f"which needs [{LOG_SMALLEST:g}, {LOG_LARGEST:g}]"
            )
        scopes.append(" ".join(map(str, [len(scope), *(position[v.name] for v in scope)])))
        entries = np.exp(log_values).ravel().tolist()
        tables.append(f"\n{len(entries)}\n{' '.join(map(repr, entries))}")
    sizes = [str(len(v.states)) for v in model.variables.values()]
    lines = ["MARKOV", str(len(sizes)), " ".join(sizes), str(len(scopes)), *scopes, *tables]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_solution(path: str | Path, model: Model) -> dict[str, Any]:
    """The assignment in a solution file: states in the order of the variables.

    Both habits are read: the bare states, and the competition's `MPE` or `MAP` header followed by their number.
    """
    text = read_text(path)
    words = text.split(None, 1)
    headed = bool(words) and words[0] in ("MPE", "MAP")
    stream = NumberStream(path, text, skip=1 if headed else 0)
    n = len(model.variables)
    if headed:
        stream.count("the number of variables", n, n)
    positions = stream.counts(n, "the states of the variables", 0)
    stream.finish(f"the {n} variables need")
    values = {}
    for (name, variable), position in zip(model.variables.items(), positions, strict=True):
        if position >= len(variable.states):
            raise ModelError(f"{path}: {name} has {len(variable.states)} states, numbered from 0; got {position}")
        values[name] = variable.states[position]
    return model.pack(values)


def write_solution(model: Model, assignment: Mapping[str, Any], path: str | Path) -> None:
    """Write the states in the order of the variables, on one line."""
    values = model.flatten(assignment)
    positions = [v.states.index(int(values[name])) for name, v in model.variables.items()]
    Path(path).write_text(" ".join(map(str, positions)) + "\n", encoding="utf-8")


def _read_scopes(stream: NumberStream, n: int) -> list[list[int]]:
    scopes = []
    for t in range(stream.count("the number of tables", 0)):
        arity = stream.count(f"the number of variables of table {t}", 0, n)
        start = stream.position
        scope = stream.counts(arity, f"the variables of table {t}", 0, n - 1)
        if len(set(scope)) != arity:
            raise stream.error(start, f"a variable occurs twice in the scope of table {t}: {scope}")
        scopes.append(scope)
    return scopes


def _add_table(model: Model, stream: NumberStream, scope: list[Variable], label: str) -> None:
    shape = tuple(len(v.states) for v in scope)
    size = math.prod(shape)
    start = stream.position
    declared = stream.count(f"the number of entries of {label}", 1, MAX_ENTRIES)
    if declared != size:
        raise stream.error(start, f"{label} over {shape} states has {size} entries; {declared} are declared")
    start = stream.position
    entries = stream.take(size, label)
    wrong = np.flatnonzero(~((entries >= 0.0) & (entries < np.inf)))
    if len(wrong):
        first = int(wrong[0])
        raise stream.error(start + first, f"{label}: an entry must be finite and >= 0, got {entries[first]:g}")
    if not entries.any():
        raise stream.error(start, f"{label}: every entry is 0, so every point is excluded")
    log_values = _log(entries).reshape(shape)
    if scope:
        model.add(table(scope, log_values, name=label))
    else:
        model.add(LinearExpression({}, float(log_values)))


def _log(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _read_evidence(path: str | Path) -> dict[str, int]:
    """Variables and their observed states.

    The file holds the number of observed variables and pairs (variable, state); the newer variant puts the number of
    samples, which must be one, in front. The parity of the number of words tells them apart.
    """
    stream = NumberStream(path, read_text(path))
    if len(stream) == 0:
        return {}
    if len(stream) % 2 == 0:
        samples = stream.count("the number of evidence samples", 0)
        if samples != 1:
            raise stream.error(0, f"the file holds {samples} evidence samples; give a file with one")
    known: dict[str, int] = {}
    for _ in range(stream.count("the number of observed variables", 0)):
        start = stream.position
        variable, state = stream.counts(2, "a variable and its state", 0)
        if known.setdefault(f"x{variable}", state) != state:
            raise stream.error(start, f"variable {variable} is observed twice, in different states")
    stream.finish("the observed variables need")
    return known
