"""Known-variance clusters on the line: exact pricing, heuristic columns and enumeration for `clusters_1d`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from certimap.model.partition import OneDimensionalClusters, Partition
from certimap.oracles.interval_listing import list_columns
from certimap.oracles.interval_pricing import climb, price
from certimap.oracles.partition import (
    ColumnRules,
    Effort,
    Floats,
    Ints,
    Masks,
    PairRewards,
    PartitionBlock,
    Pricing,
    register_block,
)

KEPT_COLUMNS = 20
CLIMB_STARTS = 24
MAX_NODES = 2**62
NODES_PER_SECOND = 100_000  # of the interval search; turns a time allowance into work
ENUMERATION_STEPS = 2_000_000


@dataclass(frozen=True)
class _Instance:
    """The pricing problem in terms of groups; see `interval_pricing.raised_weights` for the rows of `groups`."""

    groups: Floats
    low: float
    high: float
    pair_a: Ints
    pair_b: Ints
    reward: Floats


@register_block("clusters_1d")
class OneDimensionalBlock(PartitionBlock):
    """c(S) = -sum_S (y_i - mean_S)^2 / (2 v), priced by branch and bound over the mean."""

    takes_rewards: ClassVar[bool] = True

    def __init__(self, factor: Partition, rewards: PairRewards) -> None:
        super().__init__(factor, rewards)
        assert isinstance(factor, OneDimensionalClusters)
        self.y = factor.y
        self.half_precision = 0.5 / factor.variance

    def starts(self, rules: ColumnRules, rng: np.random.Generator, count: int) -> list[Ints]:
        """Nearest of K centres: evenly spread quantiles first, then K points drawn at random."""
        clusters = self.factor.n_clusters
        quantiles = (np.arange(clusters) + 0.5) / clusters
        centres = [np.quantile(self.y, quantiles)]
        centres.extend(rng.choice(self.y, clusters, replace=len(self.y) < clusters) for _ in range(count - 1))
        return [np.abs(self.y[:, None] - c[None, :]).argmin(axis=1).astype(np.int64) for c in centres]

    def heuristic_columns(
        self, multipliers: Floats, rules: ColumnRules, rng: np.random.Generator, near: Masks
    ) -> Masks:
        instance = self._instance(multipliers, rules)
        columns, values = np.zeros((KEPT_COLUMNS, rules.n_groups), dtype=bool), np.empty(KEPT_COLUMNS)
        means = np.quantile(self.y, rng.uniform(size=CLIMB_STARTS))
        count = climb(means, instance.groups, self.half_precision, *self._limits(instance), columns, values)
        return self._expand(columns[:count], values[:count], rules)

    def certified_bound(
        self, multipliers: Floats, rules: ColumnRules, target: float, tolerance: float, effort: Effort
    ) -> Pricing:
        instance = self._instance(multipliers, rules)
        columns, values = np.zeros((KEPT_COLUMNS, rules.n_groups), dtype=bool), np.empty(KEPT_COLUMNS)
        nodes = MAX_NODES if effort.nodes is None else effort.nodes
        if effort.seconds is not None:
            nodes = min(nodes, max(1, int(effort.seconds * NODES_PER_SECOND)))
        bound, count, used = price(
            float(self.y.min()),
            float(self.y.max()),
            instance.groups,
            self.half_precision,
            *self._limits(instance),
            target,
            tolerance,
            nodes,
            columns,
            values,
        )
        return Pricing(float(bound), self._expand(columns[:count], values[:count], rules), int(used))

    def enumerate_columns(
        self, multipliers: Floats, rules: ColumnRules, price: float, threshold: float, limit: int, effort: Effort
    ) -> Masks | None:
        # The empty set would pass every threshold below 0 on every interval of means.
        nonempty = replace(rules, min_size=max(rules.min_size, 1))
        instance = self._instance(multipliers, nonempty)
        tolerance = 1e-9 * (1.0 + abs(threshold))
        best = self.certified_bound(multipliers, nonempty, -np.inf, tolerance, Effort(100_000)).bound
        # Reduced values are compared in plain arithmetic there; a lower threshold lists too many rather than too few.
        magnitude = float(np.abs(instance.groups[3]).sum() + instance.groups[1].sum() * self.half_precision)
        safe = threshold - (rules.n_groups + 16) * 2.0**-48 * (magnitude + abs(threshold))
        if best <= safe:
            return np.zeros((0, len(self.y)), dtype=bool)
        columns = np.zeros((4 * limit, rules.n_groups), dtype=bool)
        count = list_columns(
            float(self.y.min()),
            float(self.y.max()),
            instance.groups,
            self.half_precision,
            *self._limits(instance),
            safe,
            0.25 * (best - safe),
            ENUMERATION_STEPS,
            columns,
        )
        if count < 0:
            return None
        found = np.unique(columns[:count], axis=0)
        return found[:, rules.group] if len(found) <= limit else None

    def _limits(self, instance: _Instance) -> tuple[float, float, Ints, Ints, Floats]:
        return instance.low, instance.high, instance.pair_a, instance.pair_b, instance.reward

    def _instance(self, multipliers: Floats, rules: ColumnRules) -> _Instance:
        size = rules.sizes.astype(float)
        mean = rules.summed(self.y) / size
        scatter = rules.summed((self.y - mean[rules.group]) ** 2)
        error = np.where(size > 1, (size + 4) * 2.0**-52 * np.abs(self.y).max(), 0.0)
        price_of, magnitude = rules.summed(multipliers), rules.summed(np.abs(multipliers))
        pairs, rewards = rules.group[self.rewards.pairs], self.rewards.weights
        inside = pairs[:, 0] == pairs[:, 1]
        np.subtract.at(price_of, pairs[inside, 0], rewards[inside])
        np.add.at(magnitude, pairs[inside, 0], np.abs(rewards[inside]))
        links = np.concatenate([pairs[~inside], rules.apart])
        weights = np.concatenate([rewards[~inside], np.full(len(rules.apart), -np.inf)])
        return _Instance(
            np.ascontiguousarray(np.stack([mean, scatter, size, price_of, magnitude, error])),
            float(rules.min_size),
            float(rules.max_size),
            np.ascontiguousarray(links[:, 0]),
            np.ascontiguousarray(links[:, 1]),
            weights,
        )

    @staticmethod
    def _expand(columns: Masks, values: Floats, rules: ColumnRules) -> Masks:
        """Columns over items, best first, without the empty one."""
        order = np.argsort(-values, kind="stable")
        ordered = columns[order]
        return np.asarray(ordered[ordered.any(axis=1)][:, rules.group])
