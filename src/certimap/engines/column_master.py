"""The column master: the set-partitioning LP over the columns found so far, in its dual form.

    minimise  sum_g lambda_g + K sigma   over   lambda(S) + sigma >= c(S)  for every column S found,

with sigma >= c(empty) where clusters may be empty. Its row multipliers are the shares x_S of the primal LP (every item
once, K clusters). This is the relaxed dual problem of the decomposition: each new column is one more constraint. Its
value is no bound: bounds come from certified pricing at the multipliers it proposes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from certimap._numeric.highs import LinearProgram, LpStatus
from certimap.oracles.partition import ColumnRules, Floats, Ints, Masks, PartitionBlock


class ColumnPool:
    """All columns found in a solve, each once, with their values c(S)."""

    def __init__(self, block: PartitionBlock, n_items: int) -> None:
        self._block = block
        self._masks = np.zeros((64, n_items), dtype=bool)
        self._values = np.zeros(64)
        self._position: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._position)

    @property
    def masks(self) -> Masks:
        return self._masks[: len(self)]

    @property
    def values(self) -> Floats:
        return self._values[: len(self)]

    def add(self, masks: Masks) -> Ints:
        """Positions of these columns, which are stored if they are new."""
        old = len(self)
        keys = [row.tobytes() for row in np.packbits(masks, axis=1)]
        at = np.array([self._position.setdefault(key, len(self._position)) for key in keys], dtype=np.int64)
        while len(self) > len(self._values):
            self._masks = np.concatenate([self._masks, np.zeros_like(self._masks)])
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        if len(self) > old:
            self._masks[at] = masks
            self._values[old : len(self)] = self._block.values(self._masks[old : len(self)])
        return at


@dataclass(frozen=True)
class DualPoint:
    """Multipliers per group, spread evenly over its items in `items`; `sigma` is the price of a cluster."""

    groups: Floats
    items: Floats
    sigma: float
    value: float


class ColumnMaster:
    """The LP of one node of the tree. With `values` of zero it decides whether any partition is feasible."""

    def __init__(self, rules: ColumnRules, n_clusters: int, empty_value: float | None) -> None:
        self.rules = rules
        self.columns = np.zeros(0, dtype=np.int64)  # positions in the pool, in the order of the rows
        groups = rules.n_groups
        self._lp = LinearProgram()
        lower = np.full(groups + 1, -math.inf)
        if empty_value is not None:
            lower[-1] = empty_value
        self._lp.add_columns(np.append(np.full(groups, -1.0), -float(n_clusters)), lower, np.full(groups + 1, math.inf))

    def restrict(self, lower: Floats, upper: Floats) -> None:
        """Keep the multipliers of the groups in a box."""
        self._lp.set_column_bounds(np.arange(self.rules.n_groups), lower, upper)

    def add(self, positions: Ints, masks: Masks, values: Floats) -> int:
        """Add the rows of columns that are not in yet; returns how many."""
        new = np.flatnonzero(~np.isin(positions, self.columns))
        if not len(new):
            return 0
        by_group = masks[new][:, self.rules.representative].astype(float)
        matrix = sparse.csr_array(np.hstack([by_group, np.ones((len(new), 1))]))
        self._lp.add_rows(values[new], np.full(len(new), math.inf), matrix)
        self.columns = np.concatenate([self.columns, positions[new]])
        return len(new)

    def solve(self) -> DualPoint | None:
        """The dual point, or None where the LP has no reliable answer."""
        if self._lp.solve() is not LpStatus.OPTIMAL:
            return None
        point = self._lp.column_values
        items = (point[:-1] / self.rules.sizes)[self.rules.group]
        return DualPoint(point[:-1], items, float(point[-1]), -self._lp.value)

    def shares(self) -> Floats:
        """x_S of the columns, in the order of `columns`."""
        return np.maximum(-self._lp.row_duals, 0.0)
