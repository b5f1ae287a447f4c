"""Topics for branch-and-price: climbs for columns, branch and bound over token counts for proofs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

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
from certimap.topics.factor import TopicClusters
from certimap.topics.pricing import Record, certify, list_columns
from certimap.topics.pricing_arrays import Flags, PricingArrays, pricing_arrays
from certimap.topics.pricing_columns import anneal

CLIMBS = 60  # from random sets, besides those around the columns that are asked for
LONG_CLIMBS = 12  # of them with many sweeps
SWEEPS, MANY_SWEEPS, HOTTEST, COLDEST = 20, 200, 2.0, 0.1  # of the annealing
KEPT_COLUMNS = 40
ENOUGH_COLUMNS = 20
LISTING_NODES = 500_000


@register_block(TopicClusters.kind)
class TopicBlock(PartitionBlock):
    """c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a) over cells, less what topics are charged."""

    pricing_nodes: ClassVar[int | None] = None
    margin_pays = True

    def __init__(self, factor: Partition, rewards: PairRewards) -> None:
        super().__init__(factor, rewards)
        assert isinstance(factor, TopicClusters)
        self.topics = factor
        single = ColumnRules.of(len(factor.items), (), (), 0, len(factor.items))
        self._cells = self._new_arrays(single)
        self._priced: ColumnRules | None = None
        self._form: tuple[ColumnRules, PricingArrays] | None = None

    def values(self, masks: Masks) -> Floats:
        """c(S) of many columns: token counts by matrix products, phi from the tables."""
        arrays = self._cells
        weights = masks.astype(np.float64)
        values = np.zeros(len(masks))
        touched = np.zeros(len(masks), dtype=np.int64)
        for f in range(len(arrays.start) - 1):
            arcs = slice(arrays.start[f], arrays.start[f + 1])
            n = (weights[:, arrays.group[arcs]] @ arrays.arc_tokens[arcs]).astype(np.int64)
            values += arrays.table[arrays.table_start[f] + n]
            if f < arrays.n_documents:
                touched += n > 0
        values -= arrays.normaliser[(weights @ arrays.tokens).astype(np.int64)]
        missing = np.flatnonzero(touched < arrays.min_documents)
        values[missing] -= arrays.missing_cost * (arrays.min_documents - touched[missing])
        return values

    def starts(self, rules: ColumnRules, rng: np.random.Generator, count: int) -> list[Ints]:
        """Random topics of the words, which keep a document's tokens of a word together."""
        cells, clusters = self.topics.cells, self.factor.n_clusters
        anchors = self.topics.charges.anchor_topics
        return [np.append(rng.integers(clusters, size=cells.n_words)[cells.word], anchors) for _ in range(count)]

    def heuristic_columns(
        self, multipliers: Floats, rules: ColumnRules, rng: np.random.Generator, near: Masks
    ) -> Masks:
        arrays = self._arrays(rules)
        columns = self._climbed_from(near[:, rules.representative], rules, rng)
        values = np.empty(len(columns))
        rng.shuffle(columns)
        for part, sweeps in ((slice(LONG_CLIMBS), MANY_SWEEPS), (slice(LONG_CLIMBS, None), SWEEPS)):
            anneal(arrays, rules.summed(multipliers), columns[part], values[part], rng, sweeps, HOTTEST, COLDEST)
        order = np.argsort(-values, kind="stable")
        order = order[np.isfinite(values[order]) & (columns[order] == 1).any(axis=1)]
        _, first = np.unique(np.packbits(columns[order] == 1, axis=1), axis=0, return_index=True)
        return self._masks(columns[order[np.sort(first)[:KEPT_COLUMNS]]], rules)

    def certified_bound(
        self, multipliers: Floats, rules: ColumnRules, target: float, tolerance: float, effort: Effort
    ) -> Pricing:
        prices = rules.summed(multipliers)
        error = self._sum_error(multipliers, rules)
        first = self._priced is not rules  # gives a bound in any case
        self._priced = rules
        verdict = certify(
            self._arrays(rules),
            prices,
            target - error,
            tolerance,
            _allowance(effort),
            enough=None if first else ENOUGH_COLUMNS,
        )
        bound = max(verdict.bound + error, target) if verdict.closed else verdict.bound + error
        if verdict.closed and verdict.bound + error <= target:
            bound = target  # the claim, and what a check has to confirm: room is worth more than a lower bound
        order = np.argsort(-verdict.values, kind="stable")
        return Pricing(bound, self._masks(verdict.columns[order], rules), verdict.nodes, _recorded(verdict.record))

    def enumerate_columns(
        self, multipliers: Floats, rules: ColumnRules, price: float, threshold: float, limit: int, effort: Effort
    ) -> Masks | None:
        prices = rules.summed(multipliers)
        error = self._sum_error(multipliers, rules)
        nodes = LISTING_NODES if effort.nodes is None else min(effort.nodes, LISTING_NODES)
        found = list_columns(
            self._arrays(rules),
            prices,
            price + error,
            threshold - error,
            limit,
            _allowance(Effort(nodes, effort.seconds, effort.progress)),
        )
        return None if found is None else self._masks(np.unique(found, axis=0), rules)

    # ------------------------------------------------------------------------------------------------------- internal
    def _climbed_from(self, near: Masks, rules: ColumnRules, rng: np.random.Generator) -> Flags:
        """The columns themselves, perturbed copies and unions of them, and blocks of documents and words."""
        cells, first = self.topics.cells, rules.representative
        nowhere = np.zeros(self.topics.charges.n_anchors, dtype=np.int64)
        document, word = np.append(cells.document, nowhere), np.append(cells.word, nowhere)
        columns = [near]
        if len(near):
            kept = near[rng.integers(len(near), size=CLIMBS)]
            columns.append(kept ^ (rng.random(kept.shape) < 0.3 * rng.random((CLIMBS, 1))))
            columns.append(near[rng.integers(len(near), size=CLIMBS // 3)] | kept[: CLIMBS // 3])
        documents = rng.random((CLIMBS, cells.n_documents)) < rng.random((CLIMBS, 1))
        words = rng.random((CLIMBS, cells.n_words)) < rng.random((CLIMBS, 1))
        columns.append(documents[:, document[first]] & words[:, word[first]])
        return np.concatenate(columns).astype(np.int8)

    def _masks(self, columns: Flags, rules: ColumnRules) -> Masks:
        whole = (columns == 1)[:, rules.group]
        return np.asarray(whole[rules.admits(whole) & whole.any(axis=1)])

    def _sum_error(self, multipliers: Floats, rules: ColumnRules) -> float:
        """What the prices of all groups together may differ from the exact sums of their multipliers."""
        return float(rules.sizes.max() + 2) * 2.0**-52 * float(np.abs(multipliers).sum())

    def _arrays(self, rules: ColumnRules) -> PricingArrays:
        if self._form is None or self._form[0] is not rules:
            self._form = rules, self._new_arrays(rules)
        return self._form[1]

    def _new_arrays(self, rules: ColumnRules) -> PricingArrays:
        return pricing_arrays(self.topics.cells, self.topics.prior, rules, self.topics.charges)


def _allowance(effort: Effort) -> Callable[[float, int], bool]:
    """Whether a search may go on, asked with its bound and nodes so far."""
    until = math.inf if effort.seconds is None else time.perf_counter() + effort.seconds
    most = math.inf if effort.nodes is None else effort.nodes

    def go_on(bound: float, nodes: int) -> bool:
        if nodes >= most or time.perf_counter() >= until:
            return False
        return effort.progress is None or not effort.progress(bound, nodes)

    return go_on


def _recorded(record: Record) -> dict[str, Any]:
    """The recorded top of the tree, as arrays for a certificate."""
    return {
        "parent": record.parent,
        "side": record.side,
        "split": record.split,
        "cut": record.cut,
        "nodes": record.nodes,
    }
