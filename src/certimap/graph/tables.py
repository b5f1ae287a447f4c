"""A discrete model as a list of tables: what variable elimination works on, and what its proof is about.

    maximise  constant + sum_k table_k(x_scope(k))    over the joint states of the variables

A hard row is a table of 0 and -inf, a soft constraint one of 0 and -weight. Rows hold to the tolerance of constraints,
widened so that rounding keeps every point that `Model.value` accepts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.graph.blocks import dense_values
from certimap.model.domains import Categorical, Integer
from certimap.model.expressions import TOLERANCE, Constraint, Row, Variable
from certimap.model.factors import Factor, Parity, Potts, SparseTable, Table
from certimap.model.model import Model

Floats = NDArray[np.float64]

MOST_ENTRIES = 2**20  # of one table
MOST_STATES = 10_000  # of one variable


@dataclass(frozen=True)
class TableTerm:
    """A function of the variables at positions `scope`, one axis each."""

    scope: tuple[int, ...]
    log_values: Floats


@dataclass(frozen=True)
class TableModel:
    """Variables (by name, with the number of their states), a constant and terms."""

    variables: tuple[Variable, ...]
    constant: float
    terms: tuple[TableTerm, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(v.states) for v in self.variables)


def as_tables(model: Model) -> TableModel | None:
    """The model as tables of its own numbers; None if a part of it is no table or too large for one."""
    variables = tuple(model.variables.values())
    if not all(isinstance(v.domain, Categorical | Integer) and len(v.states) <= MOST_STATES for v in variables):
        return None
    if not all(isinstance(f, Table | SparseTable | Potts | Parity) for f in model.factors):
        return None
    position = {v: i for i, v in enumerate(variables)}
    parts: list[tuple[Sequence[Variable], Floats | None]] = [
        *((f.variables(), _factor_values(f)) for f in model.factors),
        *(_row_table(row) for c in model.constraints.values() for row in c.rows),
        *(_soft_table(s.constraint, s.weight) for s in model.softs),
        *_linear_tables(model),
    ]
    terms = [TableTerm(tuple(position[v] for v in scope), values) for scope, values in parts if values is not None]
    return TableModel(variables, model.linear.constant, tuple(terms)) if len(terms) == len(parts) else None


def _fits(scope: Iterable[Variable]) -> bool:
    return math.prod(len(v.states) for v in scope) <= MOST_ENTRIES


def _factor_values(factor: Factor) -> Floats | None:
    scope = factor.variables()
    if not _fits(scope):
        return None
    if not isinstance(factor, Parity):
        return dense_values(factor)
    ones = _sum_over([np.array([a.at(s) for s in v.states]) for v in scope for a in factor.items if a.variable is v])
    return np.where((np.rint(ones) % 2 == 1) == factor.odd, 0.0, -np.inf) if len(scope) == len(factor.items) else None


def _row_table(row: Row) -> tuple[Sequence[Variable], Floats | None]:
    scope, holds = _holds((row,))
    return scope, None if holds is None else np.where(holds, 0.0, -np.inf)


def _soft_table(constraint: Constraint, weight: float) -> tuple[Sequence[Variable], Floats | None]:
    scope, holds = _holds(constraint.rows)
    return scope, None if holds is None else np.where(holds, 0.0, -weight)


def _holds(rows: Sequence[Row]) -> tuple[Sequence[Variable], NDArray[np.bool_] | None]:
    """Where the rows hold together, over the states of their variables."""
    scope = list(dict.fromkeys(a.variable for row in rows for a, _ in row.terms))
    if not _fits(scope):
        return scope, None
    holds = np.ones([len(v.states) for v in scope], dtype=bool)
    for row in rows:
        weights: dict[Variable, Floats] = {v: np.zeros(len(v.states)) for v in scope}
        for atom, c in row.terms:
            weights[atom.variable] += [c * atom.at(s) for s in atom.variable.states]
        activity = _sum_over(list(weights.values()))
        reach = math.fsum(float(np.abs(w).max()) for w in weights.values())
        slack = 1.001 * TOLERANCE * row.scale + 2.0**-50 * reach
        holds &= (activity >= row.lower - slack) & (activity <= row.upper + slack)
    return scope, holds


def _sum_over(vectors: Sequence[Floats]) -> Floats:
    """The sum of one vector per axis, over all combinations of their entries."""
    total = np.zeros((1,) * len(vectors))
    for axis, vector in enumerate(vectors):
        total = total + vector.reshape([-1 if i == axis else 1 for i in range(len(vectors))])
    return total


def _linear_tables(model: Model) -> list[tuple[Sequence[Variable], Floats | None]]:
    """The linear part, one table per variable; entries that are no float64 are rounded up."""
    values: dict[Variable, list[Fraction]] = defaultdict(list)
    for atom, c in model.linear.terms.items():
        states = atom.variable.states
        entries = values[atom.variable] or [Fraction(0)] * len(states)
        values[atom.variable] = [e + Fraction(c) * Fraction(atom.at(s)) for e, s in zip(entries, states, strict=True)]
    return [((v,), np.array([_rounded_up(e) for e in entries])) for v, entries in values.items()]


def _rounded_up(x: Fraction) -> float:
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)
