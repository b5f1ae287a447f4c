"""The dual point of largest margin at a prescribed bound, over the columns found so far.

    maximise  t   over   lambda(S) + sigma >= c(S) + t dist(S)^(1/2)  for every column S found,
                         sum_g lambda_g + K sigma = V,   0 <= t <= T,

where dist(S) counts the items by which S differs from the nearest cluster of the incumbent. Among all multipliers
whose bound is V (as far as these columns tell), this point leaves the columns far from the incumbent the most below
sigma: certified pricing can discard them early, and its tree is orders of magnitude smaller than at a vertex of the
master's optimal face. With t = 0 the feasible points are those of the master with bound V; there is none while V lies
below its value.

A cluster holds a large share of the items, which would make dense rows and slow solves. So the LP has a variable for
the price s_k = lambda(S_k) + sigma of each of the incumbent's clusters, and a row names only the items by which its
column differs from one of them, where these are fewer than the column itself has.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from certimap._numeric.highs import LinearProgram, LpStatus
from certimap.engines.column_master import DualPoint
from certimap.oracles.partition import ColumnRules, Floats, Ints, Masks

LARGEST_MARGIN = 5.0
VIOLATION = 1e-7
ENTERING = 200  # rows that enter the LP at once, the most violated ones
SPARE_ROWS = 300  # more than this above the number of multipliers, and slack rows leave the LP again


class MarginMaster:
    """The LP of one node; `near` holds the clusters of the incumbent, from which distances count.

    Of the thousands of columns known only those that were violated lately are rows of the LP.
    """

    def __init__(self, rules: ColumnRules, n_clusters: int, empty_value: float | None, near: Masks) -> None:
        self.rules = rules
        self.columns = np.zeros(0, dtype=np.int64)  # positions in the pool of all columns known
        self.margin = 0.0
        self._near = near
        self._clusters = n_clusters
        self._room = np.zeros((1024, rules.n_groups + 2))  # rows of the columns known, by groups, sigma and t
        self._values = np.zeros(0)
        self._listed = np.zeros(0, dtype=np.int64)  # which of them are rows of the LP, after the first one
        self._lp = LinearProgram()
        groups, known = rules.n_groups, len(near)
        self._fixed = 1 + known  # rows that stay: the bound, and what the prices of the incumbent's clusters are
        cost = np.zeros(groups + 2 + known)
        cost[groups + 1] = 1.0
        lower = np.full(len(cost), -math.inf)
        upper = np.full(len(cost), math.inf)
        lower[groups + 1], upper[groups + 1] = 0.0, LARGEST_MARGIN
        if empty_value is not None:
            lower[groups] = empty_value
        self._lp.add_columns(cost, lower, upper)
        total = np.append(np.ones(groups), [float(n_clusters), 0.0])
        own = np.hstack([self._by_group(near), np.ones((known, 1)), np.zeros((known, 1))])
        prices = np.vstack([np.zeros((1, known)), -np.eye(known)])
        fixed = sparse.csr_array(np.hstack([np.vstack([total[None, :], own]), prices]))
        self._lp.add_rows(np.zeros(self._fixed), np.zeros(self._fixed), fixed)

    def restrict(self, lower: Floats, upper: Floats) -> None:
        """Keep the multipliers of the groups in a box."""
        self._lp.set_column_bounds(np.arange(self.rules.n_groups), lower, upper)

    def prescribe(self, bound: float) -> None:
        """V."""
        self._lp.set_row_bounds([0], [bound], [bound])

    def distances(self, masks: Masks) -> Floats:
        """dist(S)^(1/2)."""
        if not len(self._near):
            return np.ones(len(masks))
        near = self._near.astype(float)
        plain = masks.astype(float)
        differing = plain.sum(axis=1)[:, None] + near.sum(axis=1)[None, :] - 2.0 * plain @ near.T
        return np.asarray(np.sqrt(differing.min(axis=1)))

    def add(self, positions: Ints, masks: Masks, values: Floats) -> int:
        """Take in the columns that are not known yet; returns how many."""
        new = np.flatnonzero(~np.isin(positions, self.columns))
        if not len(new):
            return 0
        by_group = self._by_group(masks[new])
        rows = np.hstack([by_group, np.ones((len(new), 1)), -self.distances(masks[new])[:, None]])
        known = len(self.columns)
        while known + len(new) > len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])
        self._room[known : known + len(new)] = rows
        self._values = np.concatenate([self._values, values[new]])
        self.columns = np.concatenate([self.columns, positions[new]])
        return len(new)

    def solve(self) -> DualPoint | None:
        """The dual point of largest margin; None if the columns rule the prescribed bound out."""
        if not self._settle():
            return None
        groups, (sigma, self.margin) = self._point()[:-2], self._point()[-2:].tolist()
        items = (groups / self.rules.sizes)[self.rules.group]
        return DualPoint(groups, items, sigma, float(groups.sum()) + self._clusters * sigma)

    def binding(self) -> Ints:
        """Positions of the columns that hold the margin down, the tightest first."""
        weight = np.abs(self._lp.row_duals[self._fixed :])
        order = np.argsort(-weight, kind="stable")
        return self.columns[self._listed[order[weight[order] > 1e-9]]]

    def least_bound(self) -> float | None:
        """The smallest V that the columns found allow, the value of the column master."""
        groups = self.rules.n_groups
        prices, margin = np.arange(groups + 1), groups + 1
        weight = np.append(np.ones(groups), float(self._clusters))
        self._lp.set_costs(np.append(prices, margin), np.append(-weight, 0.0))
        self._lp.set_row_bounds([0], [-math.inf], [math.inf])
        solved = self._settle()
        value = -self._lp.value
        self._lp.set_costs(np.append(prices, margin), np.append(np.zeros(groups + 1), 1.0))
        return value if solved else None

    def _settle(self) -> bool:
        """Solve over all columns known: violated ones enter the LP until there are none."""
        rows = self._room[: len(self.columns)]
        self._drop_slack_rows()  # not within the loop, which would go round in circles where optima are degenerate
        while True:
            status = self._lp.solve()
            if status is LpStatus.OPTIMAL:
                # Not by BLAS, whose threads cost more than a product of this size.
                short = self._values - np.einsum("ij,j->i", rows, self._point())
            elif status is LpStatus.UNBOUNDED and len(self._listed) < len(rows):
                short = self._values.copy()  # too few rows yet: those of large value first
            else:
                return False
            short[self._listed] = -math.inf
            worst = np.argsort(-short, kind="stable")[:ENTERING]
            worst = worst[short[worst] > VIOLATION]
            if not len(worst):
                return True
            self._lp.add_rows(self._values[worst], np.full(len(worst), math.inf), self._short_rows(rows[worst]))
            self._listed = np.concatenate([self._listed, worst])

    def _drop_slack_rows(self) -> None:
        if len(self._listed) <= self.rules.n_groups + SPARE_ROWS:
            return
        slack = self._lp.basic()[1]
        slack[: self._fixed] = False
        self._lp.delete_rows(np.flatnonzero(slack))
        self._listed = self._listed[~slack[self._fixed :]]

    def _point(self) -> Floats:
        """Multipliers of the groups, sigma and t of the last solve."""
        return self._lp.column_values[: self.rules.n_groups + 2]

    def _by_group(self, masks: Masks) -> Floats:
        return masks[:, self.rules.representative].astype(float)

    def _short_rows(self, rows: Floats) -> sparse.csr_array:
        """The same rows with the price of one of the incumbent's clusters, where that leaves fewer items."""
        short = np.hstack([rows, np.zeros((len(rows), len(self._near)))])
        groups = self.rules.n_groups
        fewest = np.count_nonzero(rows[:, :groups], axis=1)
        for k, own in enumerate(self._by_group(self._near)):
            differing = rows[:, :groups] - own
            count = np.count_nonzero(differing, axis=1)
            fewer = count < fewest
            short[fewer, :groups] = differing[fewer]
            short[fewer, groups] = 0.0
            short[fewer, groups + 2 :] = np.arange(len(self._near)) == k
            fewest = np.minimum(fewest, count)
        return sparse.csr_array(short)
