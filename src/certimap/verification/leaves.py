"""The bound of a leaf from its multipliers, valid for any multipliers (certificate.py states the formula).

Signs are repaired first: cut weights are clipped at zero and made to sum to exactly one in every block, row multipliers
that would need an infinite side are dropped. The sum is then bounded in float64 with its a-priori error; where that
does not establish the claim, it is evaluated in rational numbers, with weights that are not rounded to a common grid.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError, LeafRecord
from certimap.verification.cuts import Box, CutTable, finite
from certimap.verification.intervals import margin, up
from certimap.verification.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = 2.0**52  # weights are whole multiples of 1 / PARTS, so that float64 adds them up without rounding


@dataclass(frozen=True)
class Combination:
    """A repaired combination of cuts and rows, with the right-hand sides and constants it adds up."""

    cuts: Ints
    weights: Floats
    given: Floats  # the weights before they were rounded
    h: Floats
    rows: Ints
    row_weights: Floats
    sides: Floats
    block_bounds: Floats  # of the blocks without a cut
    objective: bool  # whether costs and offset take part


class LeafBounds:
    """Bounds of the leaves of one certificate."""

    def __init__(self, problem: Problem, cuts: CutTable) -> None:
        self.problem = problem
        self.cuts = cuts
        self._costs = np.array([float(c) for c in problem.costs])
        self._offset = float(problem.offset)
        matrix = problem.graph.rows.matrix
        self._indptr, self._indices, self._data = matrix.indptr, matrix.indices, matrix.data

    def upper_bound(self, record: LeafRecord, box: Box, enough: float) -> float:
        """A valid bound of the objective on the box: the first of two evaluations that is at most `enough`."""
        combination = self._combine(record, box, objective=True)
        return -math.inf if combination is None else self._evaluate(combination, box, enough)

    def is_empty(self, record: LeafRecord, box: Box) -> bool:
        """Whether rows and feasibility cuts, or one block by itself, exclude every point of the box."""
        combination = self._combine(record, box, objective=False)
        if combination is None or self._evaluate(combination, box, math.nextafter(0.0, -1.0)) < 0.0:
            return True
        return any(self.cuts.upper_bound(b, box) == -math.inf for b in range(len(self.problem.terms)))

    def _evaluate(self, c: Combination, box: Box, enough: float) -> float:
        if not (np.isfinite(c.h).all() and np.isfinite(c.block_bounds).all()):
            return math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            quick = self._rounded(c, box)
        return quick if quick <= enough else self._exact(c, box)

    def _combine(self, record: LeafRecord, box: Box, *, objective: bool) -> Combination | None:
        """The repaired multipliers; None if a used cut or block shows that the box has no point."""
        leaf = record.node
        cuts = _positions(f"leaf {leaf}: cuts", record.cuts, len(self.cuts.records))
        weights = finite(f"leaf {leaf}: cut_weights", record.cut_weights, len(cuts))
        rows = _positions(f"leaf {leaf}: rows", record.rows, len(self.problem.graph.rows))
        row_weights = finite(f"leaf {leaf}: row_weights", record.row_weights, len(rows))
        use = (weights > 0.0) & (self.cuts.feasibility[cuts] | objective)
        cuts, given = cuts[use], weights[use]
        self.cuts.check_boxes(cuts, box, leaf)
        h = self.cuts.constants(cuts)
        sides = self.problem.graph.rows
        side = np.where(row_weights > 0.0, sides.widest_upper[rows], sides.widest_lower[rows])
        keep = np.isfinite(side) & (row_weights != 0.0)
        bounded = np.zeros(len(self.problem.terms), dtype=bool)
        bounded[self.cuts.block[cuts[~self.cuts.feasibility[cuts]]]] = True
        missing = np.flatnonzero(~bounded).tolist() if objective else []
        constants = np.array([self.cuts.upper_bound(b, box) for b in missing])
        if (h == -math.inf).any() or (constants == -math.inf).any():
            return None
        weights = self._repaired(cuts, given)
        return Combination(cuts, weights, given, h, rows[keep], row_weights[keep], side[keep], constants, objective)

    def _repaired(self, cuts: Ints, weights: Floats) -> Floats:
        """Weights of optimality cuts as multiples of 1 / PARTS that sum to one in every block."""
        repaired = weights.copy()
        positions = np.flatnonzero(~self.cuts.feasibility[cuts])
        if not len(positions):
            return repaired
        _, block = np.unique(self.cuts.block[cuts[positions]], return_inverse=True)
        largest = np.zeros(int(block.max()) + 1)
        np.maximum.at(largest, block, weights[positions])
        share = weights[positions] / largest[block]  # no sum of them overflows
        parts = np.rint(share / np.bincount(block, share)[block] * PARTS)
        order = np.lexsort((parts, block))
        last = order[np.r_[block[order][1:] != block[order][:-1], True]]  # the largest part of every block
        parts[last] += PARTS - np.bincount(block, parts)  # whole numbers below 2^53: no rounding
        repaired[positions] = parts / PARTS
        return repaired

    def _exact_weights(self, c: Combination) -> list[Fraction]:
        """The given weights, of which the largest of every block is what the others leave of one.

        A tiny weight on a cut of huge coefficients would lose too many digits on the grid of `_repaired`.
        """
        exact = [Fraction(w) for w in c.given.tolist()]
        optimality = np.flatnonzero(~self.cuts.feasibility[c.cuts])
        for block in np.unique(self.cuts.block[c.cuts[optimality]]).tolist():
            members = optimality[self.cuts.block[c.cuts[optimality]] == block].tolist()
            total = sum((exact[k] for k in members), Fraction(0))
            scaled = {k: Fraction(float(exact[k] / total)) for k in members}
            largest = max(members, key=lambda k: scaled[k])
            rest = sum((scaled[k] for k in members if k != largest), Fraction(0))
            if rest > 1:  # rounding of a great many weights; the grid never fails
                return [Fraction(w) for w in c.weights.tolist()]
            scaled[largest] = 1 - rest
            for k, weight in scaled.items():
                exact[k] = weight
        return exact

    def _rounded(self, c: Combination, box: Box) -> float:
        """Float64 evaluation plus twice the bound of its error."""
        owner, flat = self.cuts.entries(c.cuts)
        entry, place = self._row_entries(c.rows)
        index = np.concatenate([self.cuts.columns[flat], self._indices[place]])
        term = np.concatenate([c.weights[owner] * self.cuts.u[flat], -c.row_weights[entry] * self._data[place]])
        n = self.problem.graph.n_columns
        costs = self._costs if c.objective else np.zeros(n)
        reduced = costs + np.bincount(index, term, minlength=n)
        size = np.abs(costs) + np.bincount(index, np.abs(term), minlength=n)
        constants = np.concatenate([c.weights * c.h, c.row_weights * c.sides, c.block_bounds])
        offset = self._offset if c.objective else 0.0
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        magnitude = abs(offset) + float(np.abs(constants).sum()) + float(size @ reach)
        roundings = int(np.bincount(index, minlength=1).max()) + 4  # one column's sum; fsum rounds once
        box_part = np.maximum(reduced * box.lower, reduced * box.upper)
        if not math.isfinite(magnitude):
            return math.inf
        total = math.fsum([offset, *constants.tolist(), *box_part.tolist()])
        return up(total + margin(roundings, magnitude) + 1e-300)

    def _exact(self, c: Combination, box: Box) -> float:
        """The bound in rational arithmetic, rounded up."""
        total = self.problem.offset if c.objective else Fraction(0)
        total += sum(map(Fraction, c.block_bounds.tolist()), Fraction(0))
        reduced: dict[int, Fraction] = defaultdict(Fraction)
        if c.objective:
            reduced.update((j, cost) for j, cost in enumerate(self.problem.costs) if cost)
        for k, weight, h in zip(c.cuts.tolist(), self._exact_weights(c), c.h.tolist(), strict=True):
            total += weight * Fraction(h)
            span = slice(self.cuts.starts[k], self.cuts.starts[k + 1])
            for j, u in zip(self.cuts.columns[span].tolist(), self.cuts.u[span].tolist(), strict=True):
                reduced[j] += weight * Fraction(u)
        for r, q, side in zip(c.rows.tolist(), c.row_weights.tolist(), c.sides.tolist(), strict=True):
            weight = Fraction(q)
            total += weight * Fraction(side)
            span = slice(self._indptr[r], self._indptr[r + 1])
            for j, a in zip(self._indices[span].tolist(), self._data[span].tolist(), strict=True):
                reduced[j] -= weight * Fraction(a)
        for j, r in reduced.items():
            total += r * Fraction(float(box.upper[j] if r > 0 else box.lower[j]))
        return rounded_up(total)

    def _row_entries(self, rows: Ints) -> tuple[Ints, Ints]:
        lengths = self._indptr[rows + 1] - self._indptr[rows]
        owner = np.repeat(np.arange(len(rows)), lengths)
        before = np.cumsum(lengths) - lengths
        return owner, np.arange(len(owner)) - before[owner] + self._indptr[rows][owner]


def rounded_up(x: Fraction) -> float:
    """The smallest float64 that is at least x, up to one step."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else up(nearest)


def _positions(what: str, values: object, length: int) -> Ints:
    """An array of positions below `length`."""
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise CertificateError(f"{what} are not a list of positions")
    if len(array) and not 0 <= int(array.min()) <= int(array.max()) < length:
        raise CertificateError(f"{what} refer to a position outside 0 .. {length - 1}")
    return array.astype(np.int64)
