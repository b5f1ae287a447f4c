"""Branch and bound over boxes: no admitted set is worth more than a target, but for those that are handed back.

One visit treats a few hundred boxes at once: bound them and drop what lies below the target, decide groups, shrink the
boxes, and look again or split. The last boxes made are visited first, so that few are in store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError
from certimap.verification.gaussian_bound import (
    Data,
    Frame,
    blurred,
    bound_boxes,
    frame_of,
    residual_variances,
    width_of,
)
from certimap.verification.gaussian_boxes import FREE, IN, OUT, Boxes
from certimap.verification.gaussian_cloud import Cloud
from certimap.verification.gaussian_rules import (
    Moments,
    contract_mean,
    contract_slopes,
    contract_spread,
    group_bounds,
    pivots_of,
    set_bounds,
)
from certimap.verification.gaussian_values import Kind

Floats = NDArray[np.float64]

CELLS = 100_000  # groups times boxes of one visit: arrays that stay in the cache
FEW, SMALL = 4, 12  # free groups of which all sets are looked at, and in problems that have no more than SMALL
WIDE = 10.0  # above the target: from here on a box is tried at a blurred reference, too
AGAIN = 0.4  # of a coordinate's width gained, and a box is looked at again before it is split


@dataclass(frozen=True, eq=False)
class Family:
    """The admitted sets: sizes within low .. high, no two groups that are apart."""

    low: float
    high: float
    apart: NDArray[np.bool_]  # (I, I)


class Search:
    """`target` bounds c~ - lambda~; sets that may lie above go to `found` as columns of booleans.

    The rules for groups hold for sets within `slack` of the largest reduced value of the family.
    """

    def __init__(
        self, cloud: Cloud, family: Family, target: float, slack: float, found: Callable[[NDArray[np.bool_]], None]
    ) -> None:
        self._data = Data(cloud)
        self._moments = Moments(self._data)
        self._family = family
        self._target = target
        self._slack = slack
        self._found = found
        self._conflicts = family.apart.astype(float) if family.apart.any() else None
        self._few = SMALL if len(cloud.weight) <= SMALL else FEW
        self._room = 0.0 if cloud.integral else 4.0 * self._data.rho * float(cloud.weight.sum())
        self.nodes = 0

    def run(self, boxes: Boxes, max_nodes: int) -> None:
        """Deal with every set of the boxes; `CertificateError` if that takes more than `max_nodes`."""
        batch = max(16, CELLS // len(boxes.status))
        stack = [boxes.take(slice(k, k + batch)) for k in range(0, len(boxes), batch)]
        end = self.nodes + max_nodes
        while stack:
            current = stack.pop()
            while stack and len(current) + len(stack[-1]) <= batch:
                current = Boxes.joined([current, stack.pop()])
            self.nodes += len(current)
            if self.nodes > end:
                raise CertificateError("a box of a pricing proof is too long to be replayed")
            left = self._visit(current)
            stack.extend(left.take(slice(k, k + batch)) for k in range(0, len(left), batch))

    # ------------------------------------------------------------------------------------------------------- internal
    def _visit(self, boxes: Boxes) -> Boxes:
        """What is left to be looked at."""
        boxes = self._settle(boxes)
        few = (boxes.status == FREE).sum(axis=0) <= self._few
        if few.any():
            for sets in _sets_of(boxes.take(few)):
                self._close(sets)
            boxes = boxes.take(~few)
        if not len(boxes):
            return boxes
        data = self._data
        frame = frame_of(data, boxes)
        width = width_of(data, frame, boxes)
        bounds = bound_boxes(data, boxes, frame, width)
        alive = bounds.bound > self._target
        wide = bounds.bound > self._target + WIDE
        if wide.any() and data.kind is not Kind.KNOWN:
            alive[wide] = self._blurred_bound(boxes.take(wide), frame.take(wide)) > self._target
        if not alive.any():
            return boxes.take(alive)
        boxes, frame = boxes.take(alive), frame.take(alive)
        gain, part = bounds.gain[:, alive], width.part[:, alive]
        left = bounds.bound[alive] - self._target + 2.0 * bounds.item_error[alive]
        before = boxes.lo.copy(), boxes.hi.copy()
        free = (boxes.status == FREE).sum(axis=0)
        self._decide(boxes, frame, gain, left)
        boxes, alive = self._contract(boxes, frame)
        gain, part, before = gain[:, alive], part[:, alive], (before[0][:, alive], before[1][:, alive])
        freed = 1.0 - (boxes.status == FREE).sum(axis=0) / free[alive]
        kept = _kept(boxes, before)
        part *= kept**2
        shrunk = (1.0 - kept).sum(axis=0) + 0.5 * (4.0 * freed > 1.0)
        again = (shrunk >= AGAIN) | ((boxes.status == FREE).sum(axis=0) <= self._few)
        return Boxes.joined([boxes.take(again), *self._split(boxes.take(~again), part[:, ~again], gain[:, ~again])])

    def _blurred_bound(self, boxes: Boxes, frame: Frame) -> Floats:
        data = self._data
        variances = residual_variances(data, boxes, frame)
        frame = blurred(data, boxes, frame, variances)
        return bound_boxes(data, boxes, frame, width_of(data, frame, boxes, variances)).bound

    def _settle(self, boxes: Boxes) -> Boxes:
        """Groups that others, or the sizes, leave no choice; boxes that contradict themselves are dropped."""
        data, status = self._data, boxes.status
        possible = np.ones(len(boxes), dtype=bool)
        if self._conflicts is not None:
            excluded = self._conflicts @ (status == IN) > 0.0
            possible = ~(excluded & (status == IN)).any(axis=0)
            status[excluded] = OUT
        w = data.cloud.weight
        inside, free = w @ (status == IN), w @ (status == FREE)
        n1, n2 = boxes.lo[0], boxes.hi[0]
        possible &= (inside <= n2 + self._room) & (inside + free >= n1 - self._room)
        is_free = status == FREE
        status[is_free & (data.weight > n2 - inside + self._room)] = OUT
        needed = is_free & (status == FREE) & (inside + free - data.weight < n1 - self._room)
        status[needed] = IN
        inside, free = w @ (status == IN), w @ (status == FREE)
        np.maximum(n1, inside - self._room, out=n1)
        np.minimum(n2, inside + free + self._room, out=n2)
        possible &= n1 <= n2
        return boxes if possible.all() else boxes.take(possible)

    def _close(self, boxes: Boxes) -> None:
        """Boxes of one set each: bounded in closed form, or handed back."""
        inside = (boxes.status == IN).astype(float)
        sums = self._moments.of(boxes)
        n = sums.n_in
        above = (set_bounds(self._data, sums) > self._target) & (n > 0.0)
        above &= (n >= boxes.lo[0] - self._room) & (n <= boxes.hi[0] + self._room)
        if self._conflicts is not None:
            above &= ~((self._conflicts @ inside > 0.0) & (inside > 0.0)).any(axis=0)
        for column in (boxes.status[:, above] == IN).T:
            self._found(column)

    def _decide(self, boxes: Boxes, frame: Frame, gain: Floats, left: Floats) -> None:
        """Fix groups in place, by the bound and by the rules; what they contradict is left with an empty box."""
        data, family, status = self._data, self._family, boxes.status
        free = status == FREE
        low, high = group_bounds(data, boxes, frame)
        out, inside = gain <= -left, gain >= left
        w = data.weight
        out |= (high < -self._slack) & (boxes.lo[0] - w >= family.low + self._room)
        joins = (low > self._slack) & (boxes.hi[0] + w <= family.high - self._room)
        if self._conflicts is not None:
            joins &= self._conflicts @ (status != OUT) == 0.0
        inside |= joins
        status[free & inside] = IN
        status[free & out] = OUT
        boxes.lo[0, (free & inside & out).any(axis=0)] = np.inf

    def _contract(self, boxes: Boxes, frame: Frame) -> tuple[Boxes, NDArray[np.bool_]]:
        """The boxes shrunk, and which of them are left."""
        data = self._data
        sums = self._moments.of(boxes)
        np.maximum(boxes.lo[0], sums.n_in - self._room, out=boxes.lo[0])
        np.minimum(boxes.hi[0], sums.n_in + sums.n_free + self._room, out=boxes.hi[0])
        alive = boxes.lo[0] <= boxes.hi[0]
        boxes.lo[0, ~alive] = boxes.hi[0, ~alive]
        contract_mean(data, boxes, sums)
        if data.kind is Kind.KNOWN:
            alive &= (boxes.lo <= boxes.hi).all(axis=0)
            return boxes.take(alive), alive
        pivots = pivots_of(data, sums)
        contract_spread(data, boxes, pivots)
        alive &= (boxes.lo <= boxes.hi).all(axis=0)
        boxes = boxes.take(alive)
        contract_slopes(data, boxes, frame.take(alive), pivots.take(alive))
        last = (boxes.lo <= boxes.hi).all(axis=0)
        alive[alive] = last
        return boxes.take(last), alive

    def _split(self, boxes: Boxes, part: Floats, gain: Floats) -> list[Boxes]:
        """Two children of every box: halves of the coordinate that costs most, or a group in and out."""
        if not len(boxes):
            return []
        data, D = self._data, self._data.D
        lo, hi = boxes.lo, boxes.hi
        tau = slice(1 + D, 1 + 2 * D)
        wide = hi - lo > 1e-9
        wide[0] = hi[0] > lo[0]
        wide[tau] = hi[tau] > lo[tau] * (1.0 + 1e-9)
        part = np.where(wide, part, 0.0)
        coordinate = part.argmax(axis=0)
        free = boxes.status == FREE
        decisive = np.where(free, np.abs(gain), -1.0)
        group = decisive.argmax(axis=0)
        by_group = (part.sum(axis=0) < 0.5 * decisive.max(axis=0)) | (part.max(axis=0) < 1e-9)
        children = []
        for side in (0, 1):
            child = Boxes(lo.copy(), hi.copy(), boxes.status.copy())
            child.status[group[by_group], by_group.nonzero()[0]] = (IN, OUT)[side]
            columns = (~by_group).nonzero()[0]
            rows = coordinate[columns]
            low, high = lo[rows, columns], hi[rows, columns]
            geometric = (rows == 0) | ((rows > D) & (rows <= 2 * D))
            cut = np.where(geometric, np.sqrt(np.abs(low * high)), 0.5 * (low + high))
            cut = np.clip(cut, low, high)
            step: float | Floats = 0.0
            if data.cloud.integral:
                sizes = rows == 0
                cut = np.where(sizes, np.clip(np.floor(cut), low, high - 1.0), cut)
                step = np.where(sizes, 1.0, 0.0)
            if side == 0:
                child.hi[rows, columns] = cut
            else:
                child.lo[rows, columns] = cut + step
            data.layout.join_tau(child.lo)
            data.layout.join_tau(child.hi)
            children.append(child)
        return children


def _sets_of(boxes: Boxes) -> Iterator[Boxes]:
    """Every box as its sets, those with equally many free groups together."""
    free = boxes.status == FREE
    count = free.sum(axis=0)
    batch = max(1, CELLS // len(free))
    for f in np.unique(count).tolist():
        chosen = boxes.take(count == f)
        positions = np.argsort(chosen.status != FREE, axis=0, kind="stable")[:f]
        pattern = np.where(np.arange(1 << f) >> np.arange(f)[:, None] & 1, IN, OUT).astype(np.int8)
        step = max(1, batch >> f)
        for k in range(0, len(chosen), step):
            part = chosen.take(slice(k, k + step))
            sets = part.take(np.repeat(np.arange(len(part)), 1 << f))
            columns = np.arange(len(sets))
            rows = np.repeat(positions[:, k : k + step], 1 << f, axis=1)
            sets.status[rows, columns] = np.tile(pattern, len(part))
            yield sets


def _kept(boxes: Boxes, before: tuple[Floats, Floats]) -> Floats:
    """The share of every coordinate's width that is left; 1 where there was none worth cutting."""
    old = before[1] - before[0]
    scale = 1e-9 * (np.abs(before[0]) + np.abs(before[1]))
    return np.asarray(np.where(old > scale, (boxes.hi - boxes.lo) / np.where(old > scale, old, 1.0), 1.0))
