"""The compiled factor graph: read-only arrays that engines, oracles and the verifier work on.

    maximise  offset + cost.y + sum_b theta_b(y_b)
    over      lower <= y <= upper,  y_j whole for integer j,  row_lower <= A y <= row_upper

The columns y are the atoms of the model: one-hot indicators, numeric values, components.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from certimap.model.domains import Categorical, Integer, PositiveDefinite, Real, Simplex, triangle_position
from certimap.model.expressions import Atom, Constraint
from certimap.model.factors import Factor
from certimap.model.model import Model

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class FactorBatch:
    """Block terms of one kind and shape, stacked so that arrays, not Python, do the work.

    `scope[i]` are the columns of term i, `factors[i]` its definition, `blocks[i]` its position among all blocks.
    """

    kind: str
    scope: Ints
    factors: tuple[Factor, ...]
    data: Mapping[str, NDArray[Any]]
    blocks: Ints

    def __len__(self) -> int:
        return len(self.factors)


@dataclass(frozen=True)
class Rows:
    """Linear rows  lower <= matrix y <= upper; `owner[i]` is the index of the named constraint, -1 for structure.

    A point may violate a row by `slack` and count as feasible, so bounds are about the wider rows.
    """

    matrix: sparse.csr_array
    lower: Floats
    upper: Floats
    owner: Ints
    slack: Floats

    @cached_property
    def widest_lower(self) -> Floats:
        return np.where(self.slack > 0.0, np.nextafter(self.lower - self.slack, -np.inf), self.lower)

    @cached_property
    def widest_upper(self) -> Floats:
        return np.where(self.slack > 0.0, np.nextafter(self.upper + self.slack, np.inf), self.upper)

    def __len__(self) -> int:
        return len(self.lower)


@dataclass(frozen=True)
class FactorGraph:
    """See the module's docstring. `blocks[b]` lists the indices into `factors` that block b sums."""

    model: Model
    column_of: Mapping[Atom, int]
    atoms: tuple[Atom | None, ...]  # None for the auxiliary column of a soft constraint
    lower: Floats
    upper: Floats
    cost: Floats
    offset: float
    integer: NDArray[np.bool_]
    groups: tuple[Ints, ...]  # one-hot groups, each sums to one
    group_of: Ints  # group of a column, -1 outside groups
    rows: Rows
    factors: tuple[Factor, ...]
    blocks: tuple[tuple[int, ...], ...]
    private: tuple[tuple[str, ...], ...]  # names of the variables that a block maximises out
    batches: tuple[FactorBatch, ...]
    auxiliary: Mapping[int, Constraint]  # column that is 1 where this soft constraint is violated

    @property
    def n_columns(self) -> int:
        return len(self.lower)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """The columns of variables that blocks maximise out: no bound depends on them."""
        names = {name for part in self.private for name in part}
        return np.array([a is not None and a.variable.name in names for a in self.atoms], dtype=bool)

    def encode(self, assignment: Mapping[str, Any]) -> Floats:
        """The columns at an assignment; auxiliary columns of soft constraints get their exact value."""
        values = self.model.flatten(assignment)
        y = np.zeros(self.n_columns)
        for atom, column in self.column_of.items():
            y[column] = atom.at(values[atom.variable.name])
        for column, constraint in self.auxiliary.items():
            y[column] = 0.0 if constraint.satisfied(values) else 1.0
        return y

    def rounded(self, y: Floats) -> Floats:
        """The columns of the nearest point of the domains (rows may still be violated)."""
        if not self._separate_columns:
            return self.encode(self.decode(y))
        point = np.clip(np.where(self.integer, np.round(y), y), self.lower, self.upper)
        for columns in self._groups_by_size:
            point[columns] = 0.0
            best = np.argmax(y[columns], axis=1)
            point[columns[np.arange(len(columns)), best]] = 1.0
        return point

    @cached_property
    def _separate_columns(self) -> bool:
        """Whether rounding can go column by column and group by group, without rows that tie them together."""
        tied = any(isinstance(v.domain, Simplex | PositiveDefinite) for v in self.model.variables.values())
        return not tied and not self.auxiliary and not any(self.private) and self._n_structural_rows == len(self.groups)

    @cached_property
    def _n_structural_rows(self) -> int:
        return int((self.rows.owner < 0).sum())

    @cached_property
    def _groups_by_size(self) -> list[Ints]:
        sizes = sorted({len(g) for g in self.groups})
        return [np.array([g for g in self.groups if len(g) == size]) for size in sizes]

    def decode(self, y: Floats) -> dict[str, Any]:
        """The nearest point of the domains, variable by variable (rows may still be violated).

        Variables private to a block have no say in the master; they take their best values given the others.
        """
        values = {name: self._nearest(name, y) for name in self.model.variables}
        for members, names in zip(self.blocks, self.private, strict=True):
            if names:
                values.update(self._best_private(members, names, values))
        return self.model.pack(values)

    def _best_private(
        self, members: tuple[int, ...], names: tuple[str, ...], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        candidates = (
            dict(zip(names, states, strict=True))
            for states in product(*(self.model.variables[name].states for name in names))
        )
        return max(candidates, key=lambda part: sum(self.factors[i].value_at({**values, **part}) for i in members))

    def _nearest(self, name: str, y: Floats) -> Any:
        variable = self.model.variables[name]
        domain = variable.domain
        match domain:
            case Categorical() | Integer(lower=0, upper=1):
                return domain.states[int(np.argmax([y[self.column_of[a]] for a in variable.indicators()]))]
            case Integer(lower=low, upper=high):
                return int(np.clip(round(float(y[self.column_of[variable.numeric()]])), low, high))
            case Real(lower=low, upper=high):
                return float(np.clip(y[self.column_of[variable.numeric()]], low, high))
        parts = np.array([y[self.column_of[a]] for a in variable.coordinates()])
        return nearest_simplex(parts, domain) if isinstance(domain, Simplex) else nearest_matrix(parts, domain)


def nearest_simplex(parts: Floats, domain: Simplex) -> Floats:
    """Clip to the lower bound and rescale the rest, so that the parts sum to one."""
    free = np.maximum(parts - domain.lower, 0.0)
    room = 1.0 - domain.size * domain.lower
    total = float(free.sum())
    share = free / total if total > 0 else np.full(domain.size, 1.0 / domain.size)
    return np.asarray(domain.lower + room * share)


def nearest_matrix(parts: Floats, domain: PositiveDefinite) -> Floats:
    """Clip the eigenvalues into their interval."""
    matrix = np.zeros((domain.order, domain.order))
    for i, value in enumerate(parts):
        row, column = triangle_position(i)
        matrix[row, column] = matrix[column, row] = value
    eigenvalues, vectors = np.linalg.eigh(matrix)
    clipped = (vectors * np.clip(eigenvalues, domain.lower, domain.upper)) @ vectors.T
    return np.asarray(0.5 * (clipped + clipped.T))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, protected: compiled data never changes."""
    array.flags.writeable = False
    return array


def stack(factors: Sequence[Factor]) -> dict[str, NDArray[Any]]:
    """The arrays of equal-signature factors, stacked along a new first axis."""
    parts = [f.arrays() for f in factors]
    return {key: read_only(np.stack([p[key] for p in parts])) for key in parts[0]}
