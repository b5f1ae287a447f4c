"""What a box of token counts says about its groups, and about the counts themselves.

A set that a single change improves by more than `slack` is worth less than the best one by more than that, so that it
matters neither for the largest value (slack 0) nor for a list that reaches `slack` below it. All h_f and phi are
convex: over a box, a group gains most where the counts of its factors are largest and n is smallest, and least at the
other end; where a factor jumps between 0 tokens and one, its height counts if it is in favour and other tokens may be
missing. A change must lead to an admitted set: a group joins only where no group of the box excludes it, and leaving
costs what its documents may then be missed for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certimap.verification.topic_boxes import FREE, IN, OUT, Boxes
from certimap.verification.topic_instance import Floats, Instance

ROUNDS = 10


class Rules:
    """Rules for one instance and slack."""

    def __init__(self, instance: Instance, slack: float) -> None:
        self._i = instance
        self._limit = slack + 2.0 * instance.value_error

    def contract(self, boxes: Boxes) -> Boxes:
        """Decide groups and narrow counts in place until little changes; the boxes that may hold a set."""
        for _ in range(ROUNDS):
            boxes = self._recount(boxes)
            if not len(boxes):
                return boxes
            decided, alive = self._decide(boxes)
            boxes = boxes if alive.all() else boxes.take(alive)
            if not decided:
                break
        return self._recount(boxes)

    def _recount(self, boxes: Boxes) -> Boxes:
        """Counts that the statuses imply; groups that are in exclude others; contradictory boxes are dropped."""
        i, status = self._i, boxes.status
        possible = np.ones(len(boxes), dtype=bool)
        if i.apart is not None:
            excluded = i.apart @ (status == IN) > 0.0
            possible = ~(excluded & (status == IN)).any(axis=0)
            status[excluded & (status == FREE)] = OUT
        inside = (i.per_factor @ (status == IN)).astype(np.int64)
        free = (i.per_factor @ (status == FREE)).astype(np.int64)
        np.maximum(boxes.low, inside, out=boxes.low)
        np.minimum(boxes.high, inside + free, out=boxes.high)
        possible &= (boxes.low <= boxes.high).all(axis=0)
        possible &= np.isfinite(i.missing((boxes.high[: i.n_documents] > 0).sum(axis=0)))
        return boxes if possible.all() else boxes.take(possible)

    def _decide(self, boxes: Boxes) -> tuple[bool, NDArray[np.bool_]]:
        """One sweep over all groups, in place; whether it decided any, and which boxes are left."""
        i, status, D = self._i, boxes.status, self._i.n_documents
        low, high = boxes.low[i.factor], boxes.high[i.factor]
        m, start = i.tokens[:, None], i.table_start[i.factor][:, None]
        reach = (i.per_factor @ (status != OUT)).astype(np.int64)[i.factor]  # tokens that are in or free
        inside = (i.per_factor @ (status == IN)).astype(np.int64)[i.factor]
        free = status == FREE
        never = self._any(inside + m > high) & free
        always = self._any(reach - m < low) & free
        top, bottom = np.maximum(high, m), np.minimum(low, i.highest[i.factor][:, None] - m)
        jump = i.jump[i.factor][:, None]
        alone = inside == 0
        rise = i.table[start + top] - i.table[start + top - m] - jump * (top == m)
        most = self._sum(rise + np.maximum(jump, 0.0) * alone)
        rise = i.table[start + bottom + m] - i.table[start + bottom] - jump * (bottom == 0)
        least = self._sum(rise + np.minimum(jump, 0.0) * alone)
        size, price, last = i.size[:, None], i.price[:, None], len(i.normaliser) - 1
        words = slice(D, i.n_counted)
        n_low = np.maximum(boxes.low[:D].sum(axis=0), boxes.low[words].sum(axis=0))
        n_high = np.minimum(boxes.high[:D].sum(axis=0), boxes.high[words].sum(axis=0))
        fewest, largest = np.maximum(n_low, size), np.minimum(n_high, last - size)
        most -= i.normaliser[fewest] - i.normaliser[fewest - size] + price
        least -= i.normaliser[largest + size] - i.normaliser[largest] + price
        certain = (boxes.low[:D] > 0).sum(axis=0)
        stay = certain - i.documents[:, None]
        lost = np.minimum(np.maximum(i.min_documents - stay, 0), i.documents[:, None]) if i.min_documents else 0 * stay
        most += np.where(lost > 0, i.missing_cost * np.maximum(lost, 1), 0.0)
        out = free & (never | (most < -self._limit))
        joins = least > self._limit
        if i.apart is not None:
            joins &= i.apart @ (status != OUT) == 0.0
        into = free & (always | joins)
        alive = (n_low <= n_high) & ~(out & into).any(axis=0)
        status[into] = IN
        status[out] = OUT
        return bool((into | out).any()), alive

    def _sum(self, per_arc: Floats) -> Floats:
        """Over the arcs of every group."""
        return np.asarray(np.add.reduceat(per_arc[self._i.order], self._i.first[:-1], axis=0))

    def _any(self, per_arc: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(np.logical_or.reduceat(per_arc[self._i.order], self._i.first[:-1], axis=0))
