"""Gaussian clusters for branch-and-price: climbs for columns, the compiled kernel for proofs.

Items tied by the rules enter as one group. Of soft links, the ones inside a group count exactly; between groups
r [both in S] <= r ([one in S] + [other in S]) / 2 for r > 0 and <= 0 for r < 0, so that the bound stays valid and
becomes exact where branching has tied or parted every linked pair (`relaxed_pair`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from certimap.mixture.clusters import Items
from certimap.mixture.columns import Cloud, climb, cloud_of, column_values
from certimap.mixture.factor import GaussianClusters
from certimap.mixture.kernel.boxes import UNBOUNDED
from certimap.mixture.pricing import (
    Budget,
    Column,
    PricingStatus,
    ReplayRecord,
    WhitenedProblem,
    certify,
    cluster_axes,
    enumerate_columns,
    size_ranges,
    whiten,
)
from certimap.mixture.prior import FloatArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search.arrays import Instance, compile_problem, new_state
from certimap.mixture.search.descent import ascend
from certimap.mixture.search.multistart import search
from certimap.mixture.search.repair import repair
from certimap.model.partition import Partition
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

RANDOM_CLIMBS = 24
KEPT_COLUMNS = 30
ENUMERATION_NODES = 200_000_000  # at most, and
ENUMERATION_FACTOR, LEAST_ENUMERATION = 20, 1_000_000  # times the nodes of the last proof, but so many in any case
OPEN_ROOM = 0.02  # of what a stopped proof leaves above its target: the verifier bounds wide boxes a little differently
SHIFT = 1  # coordinate of the size multiplier in the kernel's boxes
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class _Form:
    """The items of one set of rules, as the kernel, the climbs and the local search want them."""

    rules: ColumnRules
    problem: WhitenedProblem
    rotation: FloatArray
    cloud: Cloud


@register_block(GaussianClusters.kind)
class GaussianBlock(PartitionBlock):
    """c(S) as in `certimap.mixture.clusters`, for the covariance types in which it is a sum over clusters."""

    takes_rewards: ClassVar[bool] = True
    pricing_nodes: ClassVar[int | None] = None

    def __init__(self, factor: Partition, rewards: PairRewards) -> None:
        super().__init__(factor, rewards)
        assert isinstance(factor, GaussianClusters)
        self.mixture = factor
        # Boxes of a known or a single precision are few at any dual point: column generation alone is sooner done.
        self.margin_pays = factor.prior.covariance_type in ("full", "diag")
        self._form: _Form | None = None
        self._search: tuple[ColumnRules, MixtureProblem, Instance] | None = None
        self._proof_nodes = 0
        single = ColumnRules.of(len(factor.items), (), (), 0, len(factor.items))
        self._points = self._new_form(single).cloud

    # --------------------------------------------------------------------------------------------------------- primal
    def values(self, masks: Masks) -> Floats:
        rewards = np.array([self.rewards.within(mask) for mask in masks]) if len(self.rewards.weights) else 0.0
        return np.asarray(column_values(self._points, np.ascontiguousarray(masks)) + rewards)

    def starts(self, rules: ColumnRules, rng: np.random.Generator, count: int) -> list[Ints]:
        problem, _ = self._local_search(rules)
        found = search(problem, 10 * count, int(rng.integers(2**31)))
        return [problem.point_labels(optimum.labels) for optimum in found.pool]

    def improve(self, labels: Ints, rules: ColumnRules, rng: np.random.Generator) -> Ints | None:
        problem, instance = self._local_search(rules)
        z = labels[rules.representative]
        seeds = np.array([problem.items.statistics(z == k).mean for k in range(problem.n_clusters)])
        if not repair(instance, rng, z, seeds):
            return None
        ascend(instance, new_state(instance, z))
        return problem.point_labels(z)

    def heuristic_columns(
        self, multipliers: Floats, rules: ColumnRules, rng: np.random.Generator, near: Masks
    ) -> Masks:
        form = self._form_of(rules)
        columns = np.concatenate([near[:, rules.representative], _random_sets(form.cloud, rng)])
        values = climb(form.cloud, self._prices(multipliers, rules)[0], columns)
        order = np.argsort(-values, kind="stable")
        order = order[np.isfinite(values[order]) & columns[order].any(axis=1)]
        found = columns[order]
        _, first = np.unique(np.packbits(found, axis=1), axis=0, return_index=True)
        return np.asarray(found[np.sort(first)[:KEPT_COLUMNS]][:, rules.group])

    # ---------------------------------------------------------------------------------------------------------- proof
    def certified_bound(
        self, multipliers: Floats, rules: ColumnRules, target: float, tolerance: float, effort: Effort
    ) -> Pricing:
        # Only a set that is above the target with its rewards as they are is worth stopping for: where rewards that the
        # kernel overestimates are all that stands in the way, it is the kernel's target that gives way.
        form = self._form_of(rules)
        prices, error = self._prices(multipliers, rules)
        started, nodes, room = time.perf_counter(), 0, tolerance

        def claimed(proved: float) -> float:
            return proved + error + OPEN_ROOM * max(0.0, proved + error - target)

        tell = effort.progress
        if tell is not None:
            effort = replace(effort, progress=lambda proved, count: tell(claimed(proved), count))
        while True:
            budget = self._budget(effort.after(nodes, time.perf_counter() - started))
            verdict = certify(form.problem, prices, target - error, budget=budget)
            nodes += verdict.nodes
            columns = self._masks(verdict.columns, rules)
            overestimated = verdict.status is PricingStatus.VIOLATED and len(self.rewards.weights) > 0
            if not overestimated or (self.values(columns) - columns @ multipliers > target).any():
                break
            target = max(column.reduced for column in verdict.columns) + error + room
            room *= 2.0
        bound = claimed(verdict.bound) if verdict.bound < 0.5 * UNBOUNDED else math.inf
        if verdict.status is PricingStatus.CERTIFIED:
            bound = target  # the claim, and what a check has to confirm: a little room is worth more than a lower bound
        self._proof_nodes = nodes
        proof: dict[str, Any] = {"rotation": form.rotation, **_recorded(verdict.record)}
        return Pricing(bound, columns, nodes, proof)

    def enumerate_columns(
        self, multipliers: Floats, rules: ColumnRules, price: float, threshold: float, limit: int, effort: Effort
    ) -> Masks | None:
        form = self._form_of(rules)
        prices, error = self._prices(multipliers, rules)
        slack = (price - threshold) * (1.0 + 8.0 * _EPS) + 2.0 * error
        nodes = min(ENUMERATION_NODES, max(LEAST_ENUMERATION, ENUMERATION_FACTOR * self._proof_nodes))
        nodes = nodes if effort.nodes is None else min(effort.nodes, nodes)
        budget = self._budget(replace(effort, nodes=nodes), limit + 1)
        if slack <= 0.0:
            return np.zeros((0, len(multipliers)), dtype=bool)
        verdict = enumerate_columns(
            form.problem, prices, price + error, slack, budget=budget, ranges=size_ranges(form.problem)
        )
        listed = self._masks(verdict.columns, rules)
        return listed if verdict.status is PricingStatus.CERTIFIED and len(listed) <= limit else None

    def relaxed_pair(self, rules: ColumnRules) -> tuple[int, int] | None:
        parted = {(int(a), int(b)) for a, b in rules.apart}
        groups = np.sort(rules.group[self.rewards.pairs], axis=1).tolist()
        undecided = [p for p, (a, b) in enumerate(groups) if a != b and (a, b) not in parted]
        if not undecided:
            return None
        i, j = self.rewards.pairs[max(undecided, key=lambda p: abs(float(self.rewards.weights[p])))].tolist()
        return i, j

    # ------------------------------------------------------------------------------------------------------- internal
    def _budget(self, effort: Effort, max_columns: int = Budget.max_columns) -> Budget:
        return Budget(
            effort.nodes,
            effort.seconds,
            self.n_threads,
            max_columns=max_columns,
            device=self.device,
            progress=effort.progress,
        )

    def _masks(self, columns: tuple[Column, ...], rules: ColumnRules) -> Masks:
        masks = np.zeros((len(columns), rules.n_groups), dtype=bool)
        for mask, column in zip(masks, columns, strict=True):
            mask[column.members] = True
        whole = masks[:, rules.group]
        return np.asarray(whole[rules.admits(whole) & whole.any(axis=1)])

    def _prices(self, multipliers: Floats, rules: ColumnRules) -> tuple[Floats, float]:
        """Prices of the groups with their rewards, and what all of them together may err by."""
        prices, magnitude = rules.summed(multipliers), float(np.abs(multipliers).sum())
        if len(self.rewards.weights):
            pairs, weights = rules.group[self.rewards.pairs], self.rewards.weights
            parted = {(int(a), int(b)) for a, b in rules.apart}
            for (a, b), r in zip(pairs.tolist(), weights.tolist(), strict=True):
                if a == b:
                    prices[a] -= r
                elif r > 0.0 and (min(a, b), max(a, b)) not in parted:
                    prices[[a, b]] -= 0.5 * r
            magnitude += float(np.abs(weights).sum())
        largest = int(rules.sizes.max()) + len(self.rewards.weights)
        return prices, (largest + 2) * _EPS * magnitude if largest > 1 else 0.0

    def _form_of(self, rules: ColumnRules) -> _Form:
        if self._form is None or self._form.rules is not rules:
            self._form = self._new_form(rules)
        return self._form

    def _new_form(self, rules: ColumnRules) -> _Form:
        factor, prior = self.mixture, self.mixture.prior
        tied = rules.n_groups < len(rules.group)
        items = Items.from_points(factor.data - prior.mean, factor.sample_weight, rules.group if tied else None)
        total = items.total_weight + factor.n_clusters * (prior.weight_concentration - 1.0)
        rotation = np.eye(prior.dimension)
        if self.guide is not None and rules.kept_whole(self.guide):
            rotation = cluster_axes(items, prior, self.guide[rules.representative])
        low, high = self._weight_limits(rules)
        problem = whiten(
            items,
            prior,
            total,
            min_size=low,
            max_size=high,
            conflicts=[(int(a), int(b)) for a, b in rules.apart],
            rotation=rotation,
        )
        return _Form(rules, problem, rotation, cloud_of(problem, rules))

    def _weight_limits(self, rules: ColumnRules) -> tuple[float, float]:
        """Sizes count points, the kernel's limits are on weights: what the ones imply for the others."""
        weight = np.sort(self.mixture.sample_weight)
        if (weight == 1.0).all():
            return rules.min_size, rules.max_size
        low, high = weight[: rules.min_size].sum(), weight[::-1][: rules.max_size].sum()
        return float(low) * (1.0 - 1e-9), float(high) * (1.0 + 1e-9)

    def _local_search(self, rules: ColumnRules) -> tuple[MixtureProblem, Instance]:
        """The rules as a mixture problem: they hold the labels of fixed items as links."""
        if self._search is None or self._search[0] is not rules:
            factor = self.mixture
            first = rules.representative
            links = [(pair, r) for pair, r in zip(self.rewards.pairs.tolist(), self.rewards.weights, strict=True)]
            problem = MixtureProblem.from_points(
                factor.data,
                factor.prior,
                factor.n_clusters,
                sample_weight=factor.sample_weight,
                must_link=[(int(first[g]), i) for i, g in enumerate(rules.group) if i != first[g]],
                cannot_link=[(int(first[a]), int(first[b])) for a, b in rules.apart],
                min_size=rules.min_size,
                max_size=rules.max_size,
                soft_must_link=[(i, j, float(r)) for (i, j), r in links if r > 0.0],
                soft_cannot_link=[(i, j, -float(r)) for (i, j), r in links if r < 0.0],
            )
            self._search = rules, problem, compile_problem(problem)
        return self._search[1:]


def _random_sets(cloud: Cloud, rng: np.random.Generator) -> Masks:
    """The items nearest to random ones, for random scales of the axes and random sizes."""
    items, D = cloud.mean.shape
    centre = cloud.mean[rng.integers(items, size=RANDOM_CLIMBS)]
    scale = np.exp(rng.normal(size=(RANDOM_CLIMBS, D)))
    distance = (((cloud.mean[None] - centre[:, None]) * scale[:, None]) ** 2).sum(axis=2)
    size = rng.integers(min(D + 1, items), items + 1, size=RANDOM_CLIMBS)
    rank = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(rank < size[:, None])


def _recorded(record: ReplayRecord) -> dict[str, Any]:
    """The recorded top of the tree for a certificate: ranges of sizes, and the cuts of (n, mean, tau, slopes) below.

    Cuts of the size multiplier and of items mean something to the kernel only: what lies below them counts as one box.
    """
    count = len(record.parent)
    owner = np.arange(count)
    described = (record.coordinate >= 0) & (record.coordinate != SHIFT)
    for k in range(len(record.roots), count):
        parent = record.parent[k]
        if owner[parent] != parent or not described[parent]:
            owner[k] = owner[parent]
    kept = np.flatnonzero(owner == np.arange(count))
    position = np.full(count + 1, -1)  # of the parent -1 too
    position[kept] = np.arange(len(kept))
    coordinate = np.where(described, record.coordinate - (record.coordinate > SHIFT), -1)
    return {
        "sizes": np.stack([record.roots.lo[:, 0], record.roots.hi[:, 0]], axis=1),
        "parent": position[record.parent[kept]],
        "side": record.side[kept],
        "coordinate": coordinate[kept],
        "cut": record.cut[kept],
        "nodes": np.bincount(owner, weights=record.nodes, minlength=count)[kept].astype(np.int64),
    }
