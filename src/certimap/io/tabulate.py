"""A model of discrete variables as a list of tables: what formats without formulas can store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.model.domains import Categorical, Integer
from certimap.model.errors import ModelError
from certimap.model.expressions import Constraint, Variable
from certimap.model.factors import Table
from certimap.model.model import Model

Tabulated = tuple[str, Sequence[Variable], NDArray[np.float64]]  # label, scope, log-values with one axis per variable

MAX_ENTRIES = 1_000_000  # of one enumerated factor or constraint: each entry costs an evaluation in Python


def tabulate(model: Model) -> Iterator[Tabulated]:
    """Tables whose sum is the model's objective, -inf where a hard constraint is violated."""
    for variable in model.variables.values():
        if not isinstance(variable.domain, Categorical | Integer):
            raise ModelError(f"{variable.name} is a {variable.domain}; tables need categorical or integer variables")
    yield from _linear_tables(model)
    for f in model.factors:
        if isinstance(f, Table):
            yield f.label(), f.scope, f.log_values
        else:
            yield _enumerated(f.label(), f.variables(), f.value_at)
    for s in model.softs:
        penalty = partial(_penalty, s.constraint, s.weight)
        yield _enumerated(f"soft {s.constraint.name}", s.constraint.variables(), penalty)
    for c in model.constraints.values():
        yield _enumerated(c.name, c.variables(), partial(_penalty, c, math.inf))


def _penalty(constraint: Constraint, weight: float, values: Mapping[str, Any]) -> float:
    return 0.0 if constraint.satisfied(values) else -weight


def _linear_tables(model: Model) -> Iterator[Tabulated]:
    """One table per variable of the linear part, and one without variables for the constant."""
    parts: dict[Variable, NDArray[np.float64]] = {}
    for atom, coefficient in model.linear.terms.items():
        states = atom.variable.states
        part = parts.setdefault(atom.variable, np.zeros(len(states)))
        part += coefficient * np.array([atom.at(s) for s in states])
    for variable, part in parts.items():
        yield f"linear({variable.name})", (variable,), part
    if model.linear.constant:
        yield "constant", (), np.array(model.linear.constant)


def _enumerated(label: str, scope: Sequence[Variable], value: Callable[[Mapping[str, Any]], float]) -> Tabulated:
    shape = tuple(len(v.states) for v in scope)
    if math.prod(shape) > MAX_ENTRIES:
        raise ModelError(f"{label}: a table over its variables has {math.prod(shape)} entries, at most {MAX_ENTRIES}")
    log_values = np.empty(shape)
    for index in np.ndindex(shape):
        log_values[index] = value({v.name: v.states[i] for v, i in zip(scope, index, strict=True)})
    return label, scope, log_values
