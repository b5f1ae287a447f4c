"""Blocks: merging the factors of one block into a single term, whose envelope is tighter than the sum of theirs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certimap.model.domains import PositiveDefinite
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable
from certimap.model.factors import Factor, Potts, Ridge, SparseTable, Table
from certimap.model.univariate import Univariate

MAX_JOINT_ENTRIES = 65_536  # joint states of one block of tables


@dataclass(eq=False)
class RidgeSum(Factor):
    """sum_j g_j(a.x + offset_j): ridges along one direction, bounded together."""

    kind: ClassVar[str] = "ridge_sum"
    direction: LinearExpression
    functions: tuple[tuple[float, Univariate], ...]  # (offset, g)
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(self.direction.terms)
        self.coefficients = np.array([self.direction.terms[a] for a in self.atoms])

    @property
    def signature(self) -> Hashable:
        return (tuple((g.kind, len(g.parameters)) for _, g in self.functions), len(self.atoms))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"coefficients": self.coefficients, "offsets": np.array([o for o, _ in self.functions])}

    def value(self, y: NDArray[np.float64]) -> float:
        s = float(self.coefficients @ y)
        return math.fsum(g(s + offset) for offset, g in self.functions)


@dataclass(eq=False)
class Spectral(Factor):
    """0 where the eigenvalues of a matrix variable lie in its domain's interval, -inf elsewhere."""

    kind: ClassVar[str] = "spectral"
    variable: Variable
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = self.variable.coordinates()

    @property
    def domain(self) -> PositiveDefinite:
        assert isinstance(self.variable.domain, PositiveDefinite)
        return self.variable.domain

    @property
    def signature(self) -> Hashable:
        return self.domain.order

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"eigenvalues": np.array([self.domain.lower, self.domain.upper])}

    def value(self, y: NDArray[np.float64]) -> float:
        order = self.domain.order
        matrix = np.zeros((order, order))
        matrix[np.tril_indices(order)] = y
        matrix = matrix + np.tril(matrix, -1).T
        return 0.0 if self.domain.contains(matrix) else -math.inf


def merge(members: Sequence[Factor], private: Sequence[Variable]) -> Factor:
    """One factor with the sum of the members; private variables of tables are maximised out.

    Sums of tables that are no float64 are rounded up, so that an upper bound of the result bounds the sum.
    """
    if len(members) == 1 and not private:
        return members[0]
    if all(isinstance(f, Table | SparseTable | Potts) for f in members):
        return _joint_table(members, private)
    if private:
        kinds = sorted({f.kind for f in members})
        raise ModelError(f"block: private variables need blocks of tables, got factors of kind {', '.join(kinds)}")
    if all(isinstance(f, Ridge) for f in members):
        return _ridge_sum([f for f in members if isinstance(f, Ridge)])
    kinds = sorted({f.kind for f in members})
    raise ModelError(
        f"block: no rule joins factors of kind {', '.join(kinds)}; group tables, or ridges of one direction"
    )


def joint_size(members: Sequence[Factor]) -> int:
    """Number of joint states of the variables of tables."""
    return math.prod(len(v.states) for v in dict.fromkeys(v for f in members for v in f.variables()))


def _joint_table(members: Sequence[Factor], private: Sequence[Variable]) -> Factor:
    scope = list(dict.fromkeys(v for f in members for v in f.variables()))
    shape = [len(v.states) for v in scope]
    label = ", ".join(f.label() for f in members[:3]) + (", ..." if len(members) > 3 else "")
    if math.prod(shape) > MAX_JOINT_ENTRIES:
        raise ModelError(
            f"block of {label}: {math.prod(shape)} joint states, the limit is {MAX_JOINT_ENTRIES}; use smaller blocks"
        )
    total = np.zeros(shape)
    for f in members:
        axes = [scope.index(v) for v in f.variables()]
        order = np.argsort(axes)
        values = dense_values(f).transpose(order)
        spread = [shape[axis] if axis in axes else 1 for axis in range(len(scope))]
        total = _added_upwards(total, values.reshape(spread))
    kept = tuple(v for v in scope if v not in private)
    if not kept:
        raise ModelError(f"block of {label}: every variable is private; leave at least one to the master problem")
    hidden = tuple(i for i, v in enumerate(scope) if v in private)
    if hidden:
        total = total.max(axis=hidden)
    return Table(kept, np.ascontiguousarray(total), f"block({label})")


def _added_upwards(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """a + b, rounded up where it is no float64 (Knuth's two-sum gives the error), so that bounds of it stay valid."""
    total = a + b
    with np.errstate(invalid="ignore"):  # -inf less -inf, where there is no error
        part = total - a
        error = (a - (total - part)) + (b - part)
        return np.asarray(np.where(error > 0.0, np.nextafter(total, np.inf), total))


def dense_values(factor: Factor) -> NDArray[np.float64]:
    """The log-values of a table-like factor, one axis per variable."""
    match factor:
        case Table(log_values=values):
            return values
        case Potts(scope=(a, _), weight=w):
            return w * np.eye(len(a.states))
        case SparseTable(scope=scope, positions=positions, log_values=values):
            dense = np.full([len(v.states) for v in scope], -np.inf)
            dense[tuple(positions.T)] = values
            return dense
    raise TypeError(factor.kind)


def _ridge_sum(members: Sequence[Ridge]) -> Factor:
    direction = LinearExpression(members[0].expression.terms)
    for f in members[1:]:
        if f.expression.terms != direction.terms:
            raise ModelError(
                f"block: {members[0].label()} and {f.label()} have different directions; only equal ones join"
            )
    return RidgeSum(direction, tuple((f.expression.constant, f.function) for f in members))
