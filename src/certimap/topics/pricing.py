"""Certified pricing of topics: max over admissible sets S of c(S) - lambda(S), by branch and bound over token counts.

`certify` proves that no set is worth more than a target, or finds sets that are; `list_columns` lists every set above a
threshold. The mathematics stands in the kernels: `pricing_boxes` (what a box of counts decides), `pricing_bound` (the
bound of a box), `pricing_tree` (the search).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.pricing_arrays import Flags, PricingArrays
from certimap.topics.pricing_bound import Scratch, new_scratch
from certimap.topics.pricing_boxes import Box, new_box
from certimap.topics.pricing_tree import (
    DONE,
    FOUND,
    FULL,
    NODES,
    OPEN,
    RECORDED,
    TOO_MANY,
    Task,
    Tree,
    open_root,
    search,
)

FIRST_SLOTS = 256
SLICE = 200  # nodes between two looks at the clock
KEPT_COLUMNS = 200
STEPS = 20  # of the multipliers at a node
BYTES = 4_000_000_000  # that the open nodes may take


@dataclass(frozen=True)
class Record:
    """The top of a pricing tree; entry 0 is the root. Entries with split -1 are the boxes searched below.

    Arrays over entries: parent, side (0: at most the cut, or out; 1: more, or in), split (a factor, or the number of
    factors plus a group), cut, and the number of nodes searched below.
    """

    parent: IntArray
    side: IntArray
    split: IntArray
    cut: IntArray
    nodes: IntArray


@dataclass(frozen=True)
class Verdict:
    """No admissible set is worth more than `bound`; `columns` of groups with their values, `closed` if the tree is."""

    bound: float
    columns: Flags
    values: FloatArray
    nodes: int
    closed: bool
    record: Record


def certify(
    arrays: PricingArrays,
    prices: FloatArray,
    target: float,
    tolerance: float,
    go_on: Callable[[float, int], bool],
    *,
    enough: int | None = None,
    steps: int = STEPS,
    record: int = 256,
) -> Verdict:
    """Bound the pricing problem until the bound is at most `target`, or within `tolerance` of the best set met.

    `go_on` is asked between slices, with the bound and the nodes so far. With `enough` columns above the target the
    search ends early: better multipliers are worth more than the bound at these.
    """
    task = _task(arrays, prices, target, tolerance, 0.0, False, steps)
    return _Run(arrays, prices, task, KEPT_COLUMNS, record).run(go_on, enough)


def list_columns(
    arrays: PricingArrays,
    prices: FloatArray,
    price: float,
    threshold: float,
    limit: int,
    go_on: Callable[[float, int], bool],
) -> Flags | None:
    """All sets above the threshold, given that none is above the price; None if they are more than the limit."""
    task = _task(arrays, prices, threshold, 0.0, max(0.0, price - threshold), True, STEPS)
    verdict = _Run(arrays, prices, task, limit + 1, 1).run(go_on)
    return verdict.columns if verdict.closed and len(verdict.columns) <= limit else None


def value_margin(arrays: PricingArrays, prices: FloatArray) -> float:
    """What the value of a set, computed in float64, may differ from c(S) - lambda(S)."""
    roundings = len(arrays.start) + len(prices) + 40
    return roundings * 2.0**-52 * (arrays.magnitude + float(np.abs(prices).sum()))


def _task(
    arrays: PricingArrays,
    prices: FloatArray,
    target: float,
    tolerance: float,
    slack: float,
    listing: bool,
    steps: int,
) -> Task:
    return Task(
        target=float(target),
        tolerance=float(tolerance),
        slack=float(slack),
        listing=listing,
        margin=value_margin(arrays, prices),
        prices_magnitude=float(np.abs(prices).sum()),
        steps=steps,
    )


class _Run:
    """One search with its arrays."""

    def __init__(self, arrays: PricingArrays, prices: FloatArray, task: Task, columns: int, record: int) -> None:
        self._arrays = arrays
        self._prices = np.ascontiguousarray(prices, dtype=np.float64)
        self._task = task
        self._box: Box = new_box(arrays)
        self._scratch: Scratch = new_scratch(arrays)
        self._tree = _new_tree(arrays, FIRST_SLOTS, columns, record)

    def run(self, go_on: Callable[[float, int], bool], enough: int | None = None) -> Verdict:
        open_root(self._arrays, self._prices, self._tree, self._box, self._scratch, self._task)
        state = DONE if self._tree.counters[OPEN] == 0 else -1
        while state not in (DONE, TOO_MANY):
            if not go_on(self._bound(), int(self._tree.counters[NODES])):
                break
            if enough is not None and self._tree.counters[FOUND] >= enough:
                break
            state = search(self._arrays, self._prices, self._tree, self._box, self._scratch, self._task, SLICE)
            if state == FULL:
                if self._bytes() > BYTES:
                    break
                self._tree = _enlarged(self._tree)
        tree = self._tree
        found = min(int(tree.counters[FOUND]), len(tree.values))
        n = int(tree.counters[RECORDED])
        return Verdict(
            bound=self._bound(),
            columns=tree.columns[:found],
            values=tree.values[:found],
            nodes=int(tree.counters[NODES]) + 1,
            closed=state == DONE,
            record=Record(
                tree.parent[:n].copy(),
                tree.side[:n].copy(),
                tree.record_split[:n].copy(),
                tree.record_cut[:n].copy(),
                tree.record_nodes[:n].copy(),
            ),
        )

    def _bound(self) -> float:
        tree = self._tree
        opened = tree.bound[tree.heap[0]] if tree.counters[OPEN] else -math.inf
        return float(max(opened, tree.closed[0]))

    def _bytes(self) -> int:
        return sum(array.nbytes for array in self._tree)


def _new_tree(arrays: PricingArrays, slots: int, columns: int, record: int) -> Tree:
    groups, factors, arcs = len(arrays.tokens), len(arrays.start) - 1, len(arrays.group)
    return Tree(
        status=np.zeros((slots, groups), dtype=np.int8),
        low=np.zeros((slots, factors), dtype=np.int32),
        high=np.zeros((slots, factors), dtype=np.int32),
        weight=np.zeros((slots, arcs), dtype=np.float32),
        t=np.zeros(slots),
        bound=np.zeros(slots),
        split=np.zeros(slots, dtype=np.int64),
        cut=np.zeros(slots, dtype=np.int64),
        entry=np.zeros(slots, dtype=np.int64),
        heap=np.zeros(slots, dtype=np.int64),
        spare=np.zeros(slots, dtype=np.int64),
        parent=np.zeros(record, dtype=np.int64),
        side=np.zeros(record, dtype=np.int64),
        record_split=np.zeros(record, dtype=np.int64),
        record_cut=np.zeros(record, dtype=np.int64),
        record_nodes=np.zeros(record, dtype=np.int64),
        columns=np.zeros((columns, groups), dtype=np.int8),
        values=np.zeros(columns),
        counters=np.zeros(6, dtype=np.int64),
        closed=np.full(2, -np.inf),
    )


def _enlarged(tree: Tree) -> Tree:
    """The same tree with twice the slots."""
    per_slot = ("status", "low", "high", "weight", "t", "bound", "split", "cut", "entry", "heap", "spare")
    return tree._replace(
        **{name: np.concatenate([a, np.zeros_like(a)]) for name in per_slot for a in [getattr(tree, name)]}
    )
