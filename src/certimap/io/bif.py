"""Bayesian networks in the interchange format (.bif) as models: log P(x1, ..., xn) = sum of log P(x | parents)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certimap.io.bif_syntax import Document, Entries, ProbabilityBlock, Token, parse
from certimap.io.source import read_text
from certimap.io.states import read_states, state_index
from certimap.model.constraints import fix
from certimap.model.constructors import table
from certimap.model.domains import Categorical
from certimap.model.errors import ModelError
from certimap.model.expressions import Variable
from certimap.model.model import Model

Evidence = str | Path | Mapping[str, str | int]

SUM_TOLERANCE = 0.05  # published networks round their entries; a table in another order is farther off


def read_bif(path: str | Path, evidence: Evidence | None = None) -> Model:
    """Read a network; variables keep their names, states are the labels of categorical variables.

    `evidence` maps variables to states (labels or numbers), or names a file of lines `variable = state`; it becomes
    constraints, so that impossible evidence is reported by name. Entries are taken as written, not normalised.
    """
    document = parse(path, read_text(path))
    if not document.variables:
        raise ModelError(f"{path}: the file declares no variable")
    model = Model()
    for block in document.variables:
        if block.name.text in model.variables:
            raise document.error(block.name, f"variable {block.name.text!r} is declared twice")
        model.categorical(block.name.text, block.states)
    described: set[str] = set()
    for probability in document.probabilities:
        if probability.child.text in described:
            raise document.error(probability.child, f"{probability.child.text!r} has two probability blocks")
        described.add(probability.child.text)
        _add_conditional(model, document, probability)
    for name in model.variables:
        if name not in described:
            raise ModelError(f"{path}: variable {name!r} has no probability block")
    if evidence is not None:
        _observe(model, evidence if isinstance(evidence, Mapping) else read_states(evidence))
    return model


def _add_conditional(model: Model, document: Document, block: ProbabilityBlock) -> None:
    scope = [_variable(model, document, token) for token in (block.child, *block.parents)]
    if len(set(scope)) != len(scope):
        raise document.error(block.child, f"a variable occurs twice in the block of {block.child.text!r}")
    probabilities = _conditional_table(document, block, scope)
    sums = probabilities.sum(axis=0)
    if np.abs(sums - 1.0).max() > SUM_TOLERANCE:
        worst = np.unravel_index(int(np.abs(sums - 1.0).argmax()), sums.shape)
        given = ", ".join(f"{v.name} = {_labels(v)[int(i)]}" for v, i in zip(scope[1:], worst, strict=True))
        raise document.error(
            block.child, f"the entries of P({block.child.text} | {given or 'nothing'}) sum to {sums[worst]:g}, not to 1"
        )
    with np.errstate(divide="ignore"):
        log_values = np.log(probabilities)
    parents = ", ".join(v.name for v in scope[1:])
    model.add(table(scope, log_values, name=f"P({scope[0].name} | {parents})" if parents else f"P({scope[0].name})"))


def _conditional_table(document: Document, block: ProbabilityBlock, scope: list[Variable]) -> NDArray[np.float64]:
    """P with the child on the first axis. A `table` line runs through it in this order, the last parent fastest."""
    shape = tuple(len(v.states) for v in scope)
    filled = np.full(shape, np.nan)
    listed: set[tuple[int, ...]] = set()
    for entries in block.entries:
        if entries.kind == "default":
            filled[:] = _numbers(document, entries, shape[0]).reshape(-1, *[1] * len(scope[1:]))
    for entries in block.entries:
        if entries.kind == "table":
            filled[:] = _numbers(document, entries, math.prod(shape)).reshape(shape)
        elif entries.kind == "row":
            given = _parent_states(document, entries, scope[1:])
            if given in listed:
                raise document.error(entries.at, "these states of the parents are listed twice")
            listed.add(given)
            column: tuple[slice | int, ...] = (slice(None), *given)
            filled[column] = _numbers(document, entries, shape[0])
    missing = np.argwhere(np.isnan(filled[0]))
    if len(missing):
        states = ", ".join(f"{v.name} = {_labels(v)[i]}" for v, i in zip(scope[1:], missing[0], strict=True))
        raise document.error(block.child, f"P({block.child.text}{' | ' if states else ''}{states}) is not given")
    return filled


def _parent_states(document: Document, entries: Entries, parents: list[Variable]) -> tuple[int, ...]:
    if len(entries.given) != len(parents):
        raise document.error(entries.at, f"{len(entries.given)} states are given for {len(parents)} parents")
    states = []
    for token, parent in zip(entries.given, parents, strict=True):
        if token.text not in _labels(parent):
            raise document.error(token, f"{parent.name!r} has no state {token.text!r}")
        states.append(_labels(parent).index(token.text))
    return tuple(states)


def _numbers(document: Document, entries: Entries, count: int) -> NDArray[np.float64]:
    if len(entries.numbers) != count:
        raise document.error(entries.at, f"{count} numbers are needed, got {len(entries.numbers)}")
    values = np.empty(count)
    for i, token in enumerate(entries.numbers):
        try:
            values[i] = float(token.text)
        except ValueError:
            raise document.error(token, f"expected a number, got {token.text!r}") from None
        if not (values[i] >= 0.0 and math.isfinite(values[i])):
            raise document.error(token, f"a probability must be finite and >= 0, got {token.text}")
    return values


def _variable(model: Model, document: Document, token: Token) -> Variable:
    if token.text not in model.variables:
        raise document.error(token, f"no variable is called {token.text!r}")
    return model.variables[token.text]


def _labels(variable: Variable) -> tuple[str, ...]:
    assert isinstance(variable.domain, Categorical) and variable.domain.labels is not None
    return variable.domain.labels


def _observe(model: Model, known: Mapping[str, str | int]) -> None:
    for name, state in known.items():
        if name not in model.variables:
            raise ModelError(f"evidence: no variable is called {name!r}")
        variable = model.variables[name]
        model.constrain(fix(variable, state_index(variable, state)).named(f"evidence {name} = {state}"))
