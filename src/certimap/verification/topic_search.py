"""Branch and bound over boxes of counts: no set is worth more than a target, but for those that are handed back.

One visit treats many boxes at once: apply the rules, bound, decide groups by the bound, and split what is left. The
last boxes made are visited first, so that few are in store.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.topic_bound import Bounds, Lagrangian
from certimap.verification.topic_boxes import FREE, IN, OUT, Boxes
from certimap.verification.topic_instance import Instance
from certimap.verification.topic_rules import Rules

BATCH = 256
STEPS, FIRST_STEPS = 16, 200
AGAIN = 0.2  # of the free groups decided by the bound: worth another look before the split


class Search:
    """Sets that may be worth more than `target` go to `found` as columns of booleans over groups.

    The rules hold for sets within `slack` of the largest value.
    """

    def __init__(
        self, instance: Instance, target: float, slack: float, found: Callable[[NDArray[np.bool_]], None]
    ) -> None:
        self._i = instance
        self._rules = Rules(instance, slack)
        self._lagrangian = Lagrangian(instance)
        self._target = target
        self._found = found
        self.nodes = 0

    def prepare(self, root: Boxes) -> None:
        """Good multipliers for the box of all sets, in place: those below begin with them."""
        self._lagrangian.descend(root, self._target, FIRST_STEPS)

    def run(self, boxes: Boxes, max_nodes: int) -> None:
        """Deal with every set of the boxes; `CertificateError` if that takes more than `max_nodes`."""
        stack = [boxes.take(slice(k, k + BATCH)) for k in range(0, len(boxes), BATCH)]
        end = self.nodes + max_nodes
        while stack:
            current = stack.pop()
            while stack and len(current) + len(stack[-1]) <= BATCH:
                current = Boxes.joined([current, stack.pop()])
            self.nodes += len(current)
            if self.nodes > end:
                raise CertificateError("a box of a pricing proof is too long to be replayed")
            left = self._visit(current)
            stack.extend(left.take(slice(k, k + BATCH)) for k in range(0, len(left), BATCH))

    def _visit(self, boxes: Boxes) -> Boxes:
        """What is left to be looked at."""
        boxes = self._without_decided(self._rules.contract(boxes))
        if not len(boxes):
            return boxes
        bounds = self._lagrangian.descend(boxes, self._target, STEPS)
        open_ = bounds.bound > self._target
        boxes = boxes.take(open_)
        bounds = Bounds(bounds.bound[open_], bounds.mean_count[:, open_], bounds.mean_value[:, open_])
        if not len(boxes):
            return boxes
        value, lost_in, lost_out = self._lagrangian.losses(boxes)
        free = boxes.status == FREE
        out, into = free & (value - lost_in <= self._target), free & (value - lost_out <= self._target)
        boxes.status[into] = IN
        boxes.status[out] = OUT
        alive = ~(out & into).any(axis=0)
        again = alive & ((out | into).sum(axis=0) >= AGAIN * free.sum(axis=0))
        split = alive & ~again
        children = self._split(boxes.take(split), bounds.mean_count[:, split], bounds.mean_value[:, split])
        return Boxes.joined([boxes.take(again), children])

    def _without_decided(self, boxes: Boxes) -> Boxes:
        """Boxes of one set each are bounded in closed form or handed back; the others are left."""
        single = boxes.free == 0
        if not single.any():
            return boxes
        i = self._i
        inside = boxes.status[:, single] == IN
        count = (i.per_factor @ inside).astype(np.int64)
        value = i.table[i.table_start[:-1, None] + count].sum(axis=0)
        value -= i.normaliser[(i.size @ inside).astype(np.int64)] + i.price @ inside
        value -= i.missing((count[: i.n_documents] > 0).sum(axis=0))
        above = value + i.value_error > self._target
        for column in inside[:, above].T:
            self._found(column)
        return boxes.take(~single)

    def _split(self, boxes: Boxes, mean_count: NDArray[np.float64], mean_value: NDArray[np.float64]) -> Boxes:
        """Two children of every box: in the factor whose convexity costs most, at its mean count; else in a group."""
        i, n = self._i, len(boxes)
        if not n:
            return boxes
        low, high = boxes.low, boxes.high
        mean = np.clip(mean_count, low, high)
        below = np.minimum(mean.astype(np.int64), i.highest[:, None])
        start = i.table_start[:-1, None]
        above = np.minimum(below + 1, i.highest[:, None])
        convex = i.table[start + below] + (mean - below) * (i.table[start + above] - i.table[start + below])
        gap = np.where(low < high, mean_value - convex + 1e-7 * (high - low), -np.inf)
        factor = gap.argmax(axis=0)
        columns = np.arange(n)
        by_group = ~np.isfinite(gap[factor, columns])
        group = np.where(boxes.status == FREE, i.size[:, None], -1).argmax(axis=0)
        bottom, top = low[factor, columns], high[factor, columns]
        cut = np.clip(below[factor, columns], bottom, np.maximum(top - 1, bottom))
        children = []
        for side in (0, 1):
            child = Boxes(low.copy(), high.copy(), boxes.status.copy(), boxes.weight.copy(), boxes.t.copy())
            child.status[group[by_group], columns[by_group]] = (OUT, IN)[side]
            chosen, at = factor[~by_group], columns[~by_group]
            if side == 0:
                child.high[chosen, at] = cut[~by_group]
            else:
                child.low[chosen, at] = cut[~by_group] + 1
            children.append(child)
        return Boxes.joined(children)
