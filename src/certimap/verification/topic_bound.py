"""The bound on boxes: documents, words and the normaliser apart, tied by multipliers.

For any weights w of the arcs, any t and s with t <= 1 + log s, and r_g = -lambda_g - t n_g - sum of the w of g's arcs,

    c(S) - lambda(S) <= s - t V e + sum_f max over x of [h_f(n_f(x)) + sum of w over the arcs that x takes]
                        + sum over g in S of r_g,

because -phi(y) <= s - t y for y >= 0; less what documents cost that no set of the box has. The maxima are dynamic
programs over the token counts of the boxes; of r_g the positive part counts where g is free. If g is in S, all the
factors it has arcs to take these arcs, which tells by how much the bound falls then.

Every number is bounded with `margin`: the roundings it has gone through on the sum of all magnitudes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.verification.intervals import UNIT
from certimap.verification.logarithm import log_error, logarithm
from certimap.verification.topic_boxes import FREE, IN, OUT, Boxes
from certimap.verification.topic_instance import Floats, Instance, Ints

PATIENCE, SHORTER, SHORTEST = 5, 0.6, 0.02
MEMORY = 0.3
LEAST_PROGRESS = 1e-6


@dataclass(frozen=True, eq=False)
class Bounds:
    """What a descent found: the bound per box, and mean counts with mean h_f of them, shape (F, B)."""

    bound: Floats
    mean_count: Floats
    mean_value: Floats


@dataclass(frozen=True, eq=False)
class _Point:
    """The Lagrangian at some multipliers: its value with margin, and what its maxima take."""

    bound: Floats
    chosen: NDArray[np.bool_]  # (arcs, boxes)
    level: Ints  # (factors, boxes)
    slope: Floats  # of the bound in t


class Lagrangian:
    """Bounds for one instance."""

    def __init__(self, instance: Instance) -> None:
        self._i = instance
        longest = int(np.diff(instance.start).max(initial=0))
        self._degree = np.diff(instance.first).astype(float)
        operations = longest + int(self._degree.max(initial=0)) + instance.n_factors + 2 * instance.n_groups + 30
        self._unit = 4.0 * operations * UNIT

    # ------------------------------------------------------------------------------------------------------- descent
    def descend(self, boxes: Boxes, target: float, steps: int) -> Bounds:
        """Subgradient steps on the multipliers, which are left in the boxes at their best values."""
        i, n = self._i, len(boxes)
        best = np.full(n, np.inf)
        mean_count, mean_value = np.zeros((2, i.n_factors, n))
        direction = np.zeros((len(i.group), n))
        length, stall = np.full(n, 0.6), np.zeros(n, dtype=np.int64)
        weight, t = boxes.weight.copy(), boxes.t.copy()
        averaged = 0
        active = np.arange(n)
        for step in range(steps):
            current = Boxes(boxes.low[:, active], boxes.high[:, active], boxes.status[:, active], weight, t)
            self._balance(current)
            point = self._evaluate(current)
            if step == 0 or 3 * step >= steps:
                averaged = 1 if 3 * (step - 1) < steps else averaged + 1
                value = i.table[i.table_start[:-1, None] + np.maximum(point.level, 0)]
                mean_count[:, active] += (point.level - mean_count[:, active]) / averaged
                mean_value[:, active] += (value - mean_value[:, active]) / averaged
            better = point.bound < best[active] - LEAST_PROGRESS
            better |= point.bound <= target
            at = active[better]
            best[at] = np.minimum(best[at], point.bound[better])
            boxes.weight[:, at], boxes.t[at] = weight[:, better], t[better]
            stall = np.where(better, 0, stall + 1)
            length = np.where(stall == PATIENCE, SHORTER * length, length)
            stall[stall == PATIENCE] = 0
            direction = point.chosen - self._mean(point.chosen, current.status) + MEMORY * direction
            direction[current.status[i.group] != FREE] = 0.0
            s = np.exp(t - 1.0)
            norm = (direction**2).sum(axis=0) + point.slope**2 / np.maximum(s, 1.0)
            on = (best[active] > target) & (length >= SHORTEST) & (norm > 1e-12)
            if not on.any():
                break
            with np.errstate(invalid="ignore"):
                size = length * (point.bound - target) / norm
            weight = weight - size * direction
            t = t - size * point.slope / np.maximum(s, 1.0)
            if not on.all():
                active, weight, t, direction = active[on], weight[:, on], t[on], direction[:, on]
                length, stall = length[on], stall[on]
        return Bounds(best, mean_count, mean_value)

    def _mean(self, chosen: NDArray[np.bool_], status: NDArray[np.int8]) -> Floats:
        """Share of a group's arcs that are taken, for every arc."""
        i = self._i
        taken = np.add.reduceat(chosen[i.order].astype(float), i.first[:-1], axis=0)
        return np.asarray((taken / self._degree[:, None])[i.group])

    def _balance(self, boxes: Boxes) -> None:
        """Spread r_g over the arcs of g, in place, so that little is left of it."""
        i = self._i
        boxes.weight[:] += (self._rest(boxes) / self._degree[:, None])[i.group]

    def _rest(self, boxes: Boxes) -> Floats:
        """r_g, shape (G, B)."""
        i = self._i
        held = np.add.reduceat(boxes.weight[i.order], i.first[:-1], axis=0)
        return np.asarray(-i.price[:, None] - boxes.t * i.size[:, None] - held)

    def _base(self, boxes: Boxes, t: Floats, s: Floats) -> tuple[Floats, Floats]:
        """The part of the bound besides the factors, and the margin of the whole."""
        i = self._i
        rest = self._rest(Boxes(boxes.low, boxes.high, boxes.status, boxes.weight, t))
        counted = np.where(boxes.status == OUT, 0.0, np.where(boxes.status == IN, rest, np.maximum(rest, 0.0)))
        magnitude = i.magnitude + np.abs(boxes.weight).sum(axis=0) + s
        magnitude += np.abs(t) * (i.mass + 2.0 * len(i.normaliser)) + np.abs(counted).sum(axis=0)
        missing = i.missing((boxes.high[: i.n_documents] > 0).sum(axis=0))
        return counted.sum(axis=0) + s - t * i.mass - missing, self._unit * magnitude

    def _evaluate(self, boxes: Boxes) -> _Point:
        i, n = self._i, len(boxes)
        s, t = _tangent(boxes.t)
        value, error = self._base(boxes, t, s)
        chosen = np.zeros((len(i.group), n), dtype=bool)
        level = np.zeros((i.n_factors, n), dtype=np.int64)
        columns = np.arange(n)
        for f in range(i.n_factors):
            arcs = range(i.start[f], i.start[f + 1])
            ahead, taken = np.zeros((1, n)), []
            for arc in arcs:
                ahead, with_it = self._extended(ahead, boxes, arc)
                taken.append(with_it)
            total = ahead + self._allowed(boxes, f)
            at = total.argmax(axis=0)
            value = value + total[at, columns]
            level[f] = at
            for arc, with_it in zip(reversed(arcs), reversed(taken), strict=True):
                x = with_it[at, columns]
                chosen[arc] = x
                at = at - i.tokens[arc] * x
        slope = s - i.mass - level[: i.n_documents].sum(axis=0)
        return _Point(value + error, chosen, level, slope)

    def _extended(self, ahead: Floats, boxes: Boxes, arc: int) -> tuple[Floats, NDArray[np.bool_]]:
        """One arc more in a dynamic program over counts, and where taking it is better."""
        m = int(self._i.tokens[arc])
        without, with_it = np.full((2, len(ahead) + m, len(boxes)), -np.inf)
        stay, join = self._options(boxes, arc)
        np.add(ahead, stay, out=without[: len(ahead)])
        np.add(ahead, join, out=with_it[m:])
        taken = with_it > without
        return np.maximum(without, with_it), taken

    def _options(self, boxes: Boxes, arc: int) -> tuple[Floats, Floats]:
        """What it is worth to leave and to take an arc; -inf where its group is decided otherwise."""
        status = boxes.status[self._i.group[arc]]
        return np.where(status == IN, -np.inf, 0.0), np.where(status == OUT, -np.inf, boxes.weight[arc])

    def _allowed(self, boxes: Boxes, f: int) -> Floats:
        """h_f over the counts of the boxes, -inf elsewhere; shape (N_f + 1, B)."""
        i = self._i
        table = i.table[i.table_start[f] : i.table_start[f + 1]][:, None]
        count = np.arange(len(table))[:, None]
        return np.where((count >= boxes.low[f]) & (count <= boxes.high[f]), table, -np.inf)

    # ------------------------------------------------------------------------------------------------ what it decides
    def losses(self, boxes: Boxes) -> tuple[Floats, Floats, Floats]:
        """The bound, and by how much it falls at least where a group is in, and out; shapes (B), (G, B), (G, B)."""
        i, n = self._i, len(boxes)
        s, t = _tangent(boxes.t)
        value, error = self._base(boxes, t, s)
        gain = np.zeros((len(i.group), n))
        for f in range(i.n_factors):
            arcs = list(range(i.start[f], i.start[f + 1]))
            ahead = [np.zeros((1, n))]
            for arc in arcs:
                ahead.append(self._extended(ahead[-1], boxes, arc)[0])
            behind = self._allowed(boxes, f)
            value = value + (ahead[-1] + behind).max(axis=0)
            for k in range(len(arcs) - 1, -1, -1):
                m, reach = int(i.tokens[arcs[k]]), len(ahead[k])
                stay, join = self._options(boxes, arcs[k])
                without = (ahead[k] + behind[:reach]).max(axis=0) + stay
                within = (ahead[k] + behind[m : m + reach]).max(axis=0) + join
                with np.errstate(invalid="ignore"):
                    difference = within - without
                # Not a number: the box holds no set, and its bound of -inf says so.
                gain[arcs[k]] = np.where(np.isnan(difference), 0.0, difference)
                behind = np.maximum(behind[:reach] + stay, behind[m : m + reach] + join)
        lost_in = np.add.reduceat(np.maximum(-gain, 0.0)[i.order], i.first[:-1], axis=0)
        lost_out = np.add.reduceat(np.maximum(gain, 0.0)[i.order], i.first[:-1], axis=0)
        # The gains have their own roundings, of numbers that `error` covers: one more of it for each of the two sums.
        return value + 3.0 * error, lost_in, lost_out


def _tangent(t: Floats) -> tuple[Floats, Floats]:
    """s and a t with t <= 1 + log s, near the given one."""
    s = np.exp(np.clip(t, -30.0, 60.0) - 1.0)
    logs = logarithm(s)
    return s, 1.0 + logs - log_error(logs) - 4.0 * UNIT * (1.0 + np.abs(logs))
