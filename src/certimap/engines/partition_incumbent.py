"""The best partition found by branch-and-price, and the ways to better ones. Never part of a proof."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from certimap.engines.column_master import ColumnPool
from certimap.engines.ledger import Ledger
from certimap.engines.partition_problem import PartitionProblem
from certimap.engines.partition_search import PartitionSearch
from certimap.oracles.partition import ColumnRules, Floats, Ints, Masks

STARTS = 8
NEIGHBOUR_COLUMNS = 3000  # the clusters next to the incumbent's become columns if there are no more than this
LEAST_SHARE = 1e-9


class Incumbent:
    """Offers partitions to the ledger and keeps the best one; the clusters of all of them become columns."""

    def __init__(self, problem: PartitionProblem, pool: ColumnPool, ledger: Ledger, rng: np.random.Generator) -> None:
        self.labels: Ints | None = None
        self.value = -math.inf
        self._problem = problem
        self._block = problem.block
        self._pool = pool
        self._ledger = ledger
        self._rng = rng

    def start(self, starts: Sequence[Ints] | None) -> bool:
        """Take these admissible labels, or search from the block's; whether a partition was found."""
        rules = self._problem.rules()
        if rules.contradictory:
            return False
        if starts is None:
            for labels in self._block.starts(rules, self._rng, STARTS):
                self.offer_improved(labels, rules)
        else:
            for labels in starts:
                self.offer(labels)
        if self.labels is None:
            return False
        search = PartitionSearch(self._block, rules, self._problem.n_clusters)
        self._pool.add(search.neighbours(self.labels, NEIGHBOUR_COLUMNS))
        return True

    def offer(self, labels: Ints) -> float:
        """Value a partition in closed form."""
        self._pool.add(np.asarray(labels[None, :] == np.unique(labels)[:, None]))
        assignment = self._problem.assignment(labels)
        value = self._problem.graph.model.value(assignment)
        self._ledger.offer(assignment, value)
        if value > self.value:
            self.labels, self.value = labels, value
            self._block.guide = labels
        return value

    def offer_improved(self, labels: Ints, rules: ColumnRules) -> None:
        """Repair and local search from any labels, by the block where it can."""
        improved = self._block.improve(labels, rules, self._rng)
        if improved is None:
            search = PartitionSearch(self._block, rules, self._problem.n_clusters)
            improved = search.improve(labels, self._rng)
        if improved is not None:
            self.offer(improved)

    def offer_rounded(self, rules: ColumnRules, masks: Masks, shares: Floats) -> None:
        """Largest shares first, what they leave out in cluster 0; then repair and local search."""
        labels = np.full(self._problem.n_items, -1, dtype=np.int64)
        clusters = 0
        for c in np.argsort(-shares, kind="stable"):
            if shares[c] > LEAST_SHARE and clusters < self._problem.n_clusters and (labels[masks[c]] < 0).all():
                labels[masks[c]] = clusters
                clusters += 1
        self.offer_improved(np.maximum(labels, 0), rules)

    def clusters_in(self, rules: ColumnRules) -> Masks:
        """The clusters of the best partition that the rules admit, its empty ones included."""
        if self.labels is None:
            return self._pool.masks[:0]
        clusters = self.labels[None, :] == np.arange(self._problem.n_clusters)[:, None]
        return np.asarray(clusters[rules.admits(clusters)])
