"""Column generation for the dual point of largest margin: what certified pricing is given to prove."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certimap.engines.column_master import ColumnPool, DualPoint
from certimap.engines.margin_master import MarginMaster
from certimap.oracles.partition import ColumnRules, Floats, Ints, Masks, PartitionBlock

MAX_ROUNDS = 1000
QUIET_ROUNDS = 3  # without a violated column: the point is taken as settled
CLIMBED_FROM = 50  # binding columns around which the block looks for better ones
VIOLATION = 1e-6
INWARDS = 0.6
LEAST_ROOM, USUAL_ROOM = 1e-4, 1e-3  # relative to the value
WIDER, NARROWER, CLOSEST = 1.5, 0.3, 1.1


class Room:
    """How far above the incumbent a bound is asked for.

    More where the columns found rule a bound out; less, once a bound is proved, where the columns within it are too
    many to list.
    """

    def __init__(self, wanted: float, scale: float) -> None:
        self.width = wanted if wanted >= LEAST_ROOM * scale else USUAL_ROOM * scale
        self._smallest = LEAST_ROOM * scale
        self._proved: float | None = None

    def holds(self, room: float) -> bool:
        """Whether a proof came as close as was asked for."""
        return room <= WIDER * self.width

    def rule_out(self, needed: float) -> bool:
        """Columns were found for which the bound needs this much; False if what is proved can hardly be improved."""
        self._smallest = max(self._smallest, needed)
        self.width = WIDER * max(self.width, needed) if self._proved is None else CLOSEST * self._smallest
        return self._proved is None or self.width < self._proved / CLOSEST

    def narrow(self) -> bool:
        """Ask for less than was proved; False if there is no less."""
        self._proved = self.width
        self.width = max(NARROWER * self.width, CLOSEST * self._smallest)
        return self.width < self._proved / CLOSEST


class MarginSearch:
    """One node of the tree; `near` holds the clusters of the incumbent that the node admits."""

    def __init__(
        self,
        block: PartitionBlock,
        pool: ColumnPool,
        rules: ColumnRules,
        n_clusters: int,
        empty_value: float | None,
        near: Masks,
        rng: np.random.Generator,
    ) -> None:
        self.master = MarginMaster(rules, n_clusters, empty_value, near)
        self._block = block
        self._pool = pool
        self._rules = rules
        self._near = near
        self._rng = rng
        self._clusters = n_clusters
        self._floor = -np.inf if empty_value is None else empty_value
        self._best: Floats | None = None
        self._estimate = np.inf
        known = np.flatnonzero(rules.admits(pool.masks)).astype(np.int64)
        self.master.add(known, pool.masks[known], pool.values[known])

    def settle(self, bound: float, may_go_on: Callable[[], bool]) -> DualPoint | None:
        """The point of largest margin at this bound; None if the columns found rule the bound out.

        Columns are looked for at a mixture of that point and the best one so far, which keeps the search from jumping
        between distant vertices; only where that finds nothing new, at the point itself.
        """
        self.master.prescribe(bound)
        quiet = 0
        for _ in range(MAX_ROUNDS):
            dual = self.master.solve()
            if dual is None or quiet >= QUIET_ROUNDS or not may_go_on():
                return dual
            fresh = self._best is not None and self._look(INWARDS * self._best + (1.0 - INWARDS) * dual.items, dual)
            fresh = fresh or self._look(dual.items, dual)
            quiet = 0 if fresh else quiet + 1
        return self.master.solve()

    def add(self, columns: Masks, dual: DualPoint) -> bool:
        """Take in the columns that the point gives less than their margin; whether there were any."""
        at: Ints = np.unique(self._pool.add(columns))
        masks, values = self._pool.masks[at], self._pool.values[at]
        reduced = values - masks @ dual.items
        short = reduced > dual.sigma - self.master.margin * self.master.distances(masks) + VIOLATION
        return self.master.add(at[short], masks[short], values[short]) > 0

    def _look(self, multipliers: Floats, dual: DualPoint) -> bool:
        """Whether columns near these multipliers violate the dual point; keeps the multipliers if they are the best."""
        binding = self._pool.masks[self.master.binding()[:CLIMBED_FROM]]
        around = np.concatenate([self._near[self._near.any(axis=1)], binding])
        columns = self._block.heuristic_columns(multipliers, self._rules, self._rng, around)
        at = self._pool.add(columns)
        price = float((self._pool.values[at] - columns @ multipliers).max(initial=self._floor))
        estimate = float(multipliers.sum()) + self._clusters * price
        if estimate < self._estimate:
            self._best, self._estimate = multipliers, estimate
        return self.add(columns, dual)
