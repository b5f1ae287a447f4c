"""Kernels of the pricing tree: best-first search over boxes, anytime, with every open node in flat arrays.

Children differ in the count of one factor (at most the cut, or more), or in one group (out or in). The tree is searched
in slices: the caller sees bounds in between and enlarges the arrays when they are full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.jit import entry, kernel
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.pricing_arrays import Flags, PricingArrays
from certimap.topics.pricing_bound import Scratch, descend, fix_by_bound
from certimap.topics.pricing_boxes import FREE, IN, Box, contract
from certimap.topics.pricing_columns import climb_one

DONE, SLICE_OVER, FULL, TOO_MANY = 0, 1, 2, 3
ROUNDS = 3  # of bounding and fixing per node
WORTH_REPEATING = 0.2  # of the free groups fixed
NOT_SPLIT = -1

# Counters of a tree.
OPEN, USED, SPARE, NODES, RECORDED, FOUND = range(6)


class Tree(NamedTuple):
    """Open nodes in slots; a heap orders the slots by bound.

    The record holds the top of the tree: entry k has a parent, the factor (or factors + group) and cut that the parent
    was split at, its side (0: at most the cut, or out), and the number of nodes searched below it.
    """

    status: Flags  # (slots, groups)
    low: NDArray[np.int32]  # (slots, factors)
    high: NDArray[np.int32]
    weight: NDArray[np.float32]  # (slots, arcs)
    t: FloatArray
    bound: FloatArray
    split: IntArray  # factor, or factors + group
    cut: IntArray
    entry: IntArray  # of the record
    heap: IntArray
    spare: IntArray  # free slots
    parent: IntArray  # the record
    side: IntArray
    record_split: IntArray
    record_cut: IntArray
    record_nodes: IntArray
    columns: Flags  # found columns, (limit, groups)
    values: FloatArray
    counters: IntArray
    closed: FloatArray  # [0]: largest bound of what was closed, [1]: largest value of a column met


class Task(NamedTuple):
    """What is to be shown: no set has a value above the target (which rises with the best column, less `tolerance`).

    With `listing`, the sets above the target are listed and `slack` is how far they may lie below the best.
    """

    target: float
    tolerance: float
    slack: float
    listing: bool
    margin: float  # of a single value
    prices_magnitude: float
    steps: int


@kernel
def push(tree: Tree, slot: int) -> None:
    i = tree.counters[OPEN]
    tree.counters[OPEN] += 1
    while i > 0:
        above = (i - 1) // 2
        if tree.bound[tree.heap[above]] >= tree.bound[slot]:
            break
        tree.heap[i] = tree.heap[above]
        i = above
    tree.heap[i] = slot


@kernel
def pop(tree: Tree) -> int:
    top = tree.heap[0]
    tree.counters[OPEN] -= 1
    size = tree.counters[OPEN]
    last = tree.heap[size]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and tree.bound[tree.heap[child + 1]] > tree.bound[tree.heap[child]]:
            child += 1
        if tree.bound[last] >= tree.bound[tree.heap[child]]:
            break
        tree.heap[i] = tree.heap[child]
        i = child
    if size:
        tree.heap[i] = last
    tree.spare[tree.counters[SPARE]] = top
    tree.counters[SPARE] += 1
    return int(top)


@entry
def open_root(arrays: PricingArrays, prices: FloatArray, tree: Tree, box: Box, scratch: Scratch, task: Task) -> None:
    """Bound the box of all sets with many steps; afterwards the tree has one node, or none."""
    count = np.zeros(len(box.low), dtype=np.int64)
    for f in range(arrays.n_documents, len(box.low)):
        at, high = arrays.table_start[f], box.high[f]
        for arc in range(arrays.start[f], arrays.start[f + 1]):
            scratch.weight[arc] = -arrays.arc_tokens[arc] * (arrays.table[at + high] - arrays.table[at]) / max(high, 1)
    n = len(arrays.normaliser) - 1
    t = 1.0 + np.log(max(1.0, 0.3 * n + arrays.mass))
    tree.parent[0], tree.record_split[0] = -1, NOT_SPLIT
    tree.counters[RECORDED] = 1
    _bound_child(arrays, prices, tree, box, scratch, task, t, np.inf, 0, 10 * task.steps, count)


@entry
def search(
    arrays: PricingArrays, prices: FloatArray, tree: Tree, box: Box, scratch: Scratch, task: Task, nodes: int
) -> int:
    """Search on for so many nodes; why it stopped."""
    factors = len(box.low)
    count = np.zeros(factors, dtype=np.int64)
    for _ in range(nodes):
        if tree.counters[OPEN] == 0:
            return DONE
        if tree.bound[tree.heap[0]] <= _target(tree, task):
            tree.closed[0] = max(tree.closed[0], tree.bound[tree.heap[0]])
            tree.counters[OPEN] = 0
            return DONE
        if tree.counters[SPARE] + len(tree.bound) - tree.counters[USED] < 3:
            return FULL
        if task.listing and tree.counters[FOUND] > len(tree.values):
            return TOO_MANY
        slot = pop(tree)
        split, cut, entry_ = tree.split[slot], tree.cut[slot], tree.entry[slot]
        first, second = _record_split(tree, entry_, split, cut)
        parent_bound, t = tree.bound[slot], tree.t[slot]
        # Children take slots of their own; until the last one has been read, this one must not be given away.
        tree.counters[SPARE] -= 1
        for side in range(2):
            for f in range(factors):
                box.low[f], box.high[f] = tree.low[slot, f], tree.high[slot, f]
            for g in range(len(box.status)):
                box.status[g] = tree.status[slot, g]
            for arc in range(len(arrays.group)):
                scratch.weight[arc] = tree.weight[slot, arc]
            if split >= factors:
                box.status[split - factors] = 2 * side - 1
            elif side == 0:
                box.high[split] = cut
            else:
                box.low[split] = cut + 1
            into = second if side else first
            tree.counters[NODES] += 1
            tree.record_nodes[into] += 1
            _bound_child(arrays, prices, tree, box, scratch, task, t, parent_bound, into, task.steps, count)
        tree.spare[tree.counters[SPARE]] = slot
        tree.counters[SPARE] += 1
    return SLICE_OVER


@kernel
def _target(tree: Tree, task: Task) -> float:
    return task.target if task.listing else max(task.target, tree.closed[1] + task.tolerance)


@kernel
def _record_split(tree: Tree, entry_: int, split: int, cut: int) -> tuple[int, int]:
    """The record's entries of the two children: new ones while there is room."""
    k = tree.counters[RECORDED]
    if tree.record_split[entry_] != NOT_SPLIT or k + 2 > len(tree.parent):
        return entry_, entry_
    tree.record_split[entry_], tree.record_cut[entry_] = split, cut
    for side in range(2):
        tree.parent[k + side], tree.side[k + side] = entry_, side
        tree.record_split[k + side] = NOT_SPLIT
    tree.counters[RECORDED] = k + 2
    return k, k + 1


@kernel
def _bound_child(
    arrays: PricingArrays,
    prices: FloatArray,
    tree: Tree,
    box: Box,
    scratch: Scratch,
    task: Task,
    t: float,
    parent_bound: float,
    entry_: int,
    steps: int,
    count: IntArray,
) -> None:
    """Contract and bound a box; keep it as an open node unless that closes it."""
    bound, decided = parent_bound, 0
    for _ in range(ROUNDS):
        if not contract(arrays, box, prices, task.slack, task.margin):
            return
        target = _target(tree, task)
        found, t = descend(arrays, box, scratch, prices, task.prices_magnitude, t, target, steps)
        bound = min(bound, found)
        if bound <= target:
            tree.closed[0] = max(tree.closed[0], bound)
            return
        free = _free_groups(box)
        if free == 0:
            break
        decided = fix_by_bound(arrays, box, scratch, prices, task.prices_magnitude, t, target)
        if decided:
            tree.closed[0] = max(tree.closed[0], target)
        if decided < 0:
            return
        if decided < WORTH_REPEATING * free:
            break
    # What was decided last has yet to reach the counts, whatever the reason for leaving the loop.
    if decided and not contract(arrays, box, prices, task.slack, task.margin):
        return
    if _free_groups(box) == 0:
        _take_decided(arrays, prices, tree, box, task, bound)
        return
    _try_column(arrays, prices, tree, box, scratch, task, count)
    _store(arrays, tree, box, scratch, t, bound, entry_)


@kernel
def _free_groups(box: Box) -> int:
    free = 0
    for g in range(len(box.status)):
        free += box.status[g] == FREE
    return free


@kernel
def _store(arrays: PricingArrays, tree: Tree, box: Box, scratch: Scratch, t: float, bound: float, entry_: int) -> None:
    if tree.counters[SPARE]:
        tree.counters[SPARE] -= 1
        slot = tree.spare[tree.counters[SPARE]]
    else:
        slot = tree.counters[USED]
        tree.counters[USED] += 1
    for f in range(len(box.low)):
        tree.low[slot, f], tree.high[slot, f] = box.low[f], box.high[f]
    for g in range(len(box.status)):
        tree.status[slot, g] = box.status[g]
    for arc in range(len(arrays.group)):
        tree.weight[slot, arc] = scratch.weight[arc]
    tree.t[slot], tree.bound[slot], tree.entry[slot] = t, bound, entry_
    tree.split[slot], tree.cut[slot] = _choose_split(arrays, box, scratch)
    push(tree, slot)


@kernel
def _choose_split(arrays: PricingArrays, box: Box, scratch: Scratch) -> tuple[int, int]:
    """The factor whose convexity the bound exploits most, cut at its mean count; without one, the largest group."""
    best, split, cut = -1.0, -1, 0
    for f in range(len(box.low)):
        low, high = box.low[f], box.high[f]
        if low == high:
            continue
        mean = min(max(scratch.mean_count[f], float(low)), float(high))
        below = int(mean)
        at = arrays.table_start[f] + below
        value = arrays.table[at]
        if mean > below:
            value += (mean - below) * (arrays.table[at + 1] - value)
        gap = scratch.mean_value[f] - value + 1e-7 * (high - low)
        if gap > best:
            best, split, cut = gap, f, min(max(below, low), high - 1)
    if split >= 0:
        return split, cut
    largest = -1
    for g in range(len(box.status)):
        if box.status[g] == FREE and arrays.tokens[g] > largest:
            largest, split = arrays.tokens[g], len(box.low) + g
    return split, 0


@kernel
def _take_decided(arrays: PricingArrays, prices: FloatArray, tree: Tree, box: Box, task: Task, bound: float) -> None:
    """A box of one set: its value, with its rounding, is what it is worth."""
    documents = 0
    for f in range(arrays.n_documents):
        documents += box.inside[f] > 0
    value, n = 0.0, 0
    if documents < arrays.min_documents:
        value -= arrays.missing_cost * (arrays.min_documents - documents)
        if value == -np.inf:
            return
    for g in range(len(box.status)):
        if box.status[g] == IN:
            value -= prices[g]
            n += arrays.tokens[g]
    for f in range(len(box.low)):
        value += arrays.table[arrays.table_start[f] + box.inside[f]]
    value -= arrays.normaliser[n]
    tree.closed[0] = max(tree.closed[0], min(bound, value + task.margin))
    if value + task.margin > task.target:
        _keep(tree, box.status, value)


@kernel
def _keep(tree: Tree, status: Flags, value: float) -> None:
    """Store a column; a listing must not lose one, a search keeps the latest."""
    tree.closed[1] = max(tree.closed[1], value)
    place = tree.counters[FOUND] % len(tree.values)
    tree.counters[FOUND] += 1
    for g in range(len(status)):
        tree.columns[place, g] = status[g] == IN
    tree.values[place] = value


@kernel
def _try_column(
    arrays: PricingArrays, prices: FloatArray, tree: Tree, box: Box, scratch: Scratch, task: Task, count: IntArray
) -> None:
    """Climb from the set that the documents choose."""
    if task.listing:
        return
    x = box.status.copy()
    for g in range(len(x)):
        if x[g] == FREE:
            x[g] = scratch.chosen[arrays.arcs[arrays.arc_start[g]]]
        x[g] = x[g] == IN
    value = climb_one(arrays, prices, x, count)
    if value <= task.target:
        return
    # Sets of one value are taken for the same set: what is lost by that is only a column.
    for k in range(min(tree.counters[FOUND], len(tree.values))):
        if abs(tree.values[k] - value) <= 1e-9 * (1.0 + abs(value)):
            return
    _keep(tree, x, value)
