"""Boxes of cluster parameters (coordinates as in `node.hpp`) and the root boxes that cover every set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.kernel.whitening import WhitenedProblem
from certimap.mixture.prior import FloatArray

UNBOUNDED = 1e300  # a bound that says nothing
_ANY_SHIFT = 1e30  # beyond the range of any u; the kernel shrinks it from the items


@dataclass(frozen=True, eq=False)
class BoxList:
    """Boxes of (n, shift, mu, tau, b) with the items that are inside and free in each; `bound` of c(S) - lambda(S).

    `origin` is the entry of the record of splits that a box belongs to, below which it was found.
    """

    lo: FloatArray
    hi: FloatArray
    bound: FloatArray
    inside: NDArray[np.bool_]
    free: NDArray[np.bool_]
    origin: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bound)


def size_ranges(problem: WhitenedProblem, ratio: float = 1.5) -> list[tuple[float, float]]:
    """Ranges that cover every admissible size of a nonempty set; sizes at a limit have ranges of their own."""
    low, high = float(problem.weight.min()), float(problem.weight.sum())
    low, high = max(low, problem.min_size), min(high, problem.max_size)
    ranges: list[tuple[float, float]] = []
    if not problem.integral:
        while low < high:
            ranges.append((low, min(high, low * ratio)))
            low = ranges[-1][1]
        return ranges or [(low, high)] if low <= high else []
    start, end = math.ceil(low), math.floor(high)
    ends = {start - 1, end}
    if problem.min_size > 0.0:
        ends.add(start)
    if problem.max_size < problem.weight.sum():
        ends.add(end - 1)
    while start <= end:
        stop = min([int(start * ratio), *(e for e in ends if e >= start)])
        ranges.append((float(start), float(stop)))
        start = stop + 1
    return ranges


def root_boxes(problem: WhitenedProblem, ranges: Sequence[tuple[float, float]]) -> BoxList:
    """Boxes that contain theta(S) of every nonempty set of the given sizes.

    The mean lies between the extreme points and m0; I <= M_S <= M of all items bounds tau, which is 1 if it is known;
    for the slopes, 1 <= s_d = M_dd - b_d' M_<d b_d and M_<d >= I give |b_d|^2 <= M_dd - 1.
    """
    D, grow = problem.dimension, 1.0 + 1e-9
    items = len(problem.weight)
    low = np.minimum(problem.mean.min(axis=0), problem.prior_mean)
    high = np.maximum(problem.mean.max(axis=0), problem.prior_mean)
    pad = 1e-9 * (np.abs(low) + np.abs(high))
    mass = problem.b0 + problem.weight.sum()
    middle = (problem.b0 * problem.prior_mean + problem.weight @ problem.mean) / mass
    deviation, shift = problem.mean - middle, problem.prior_mean - middle
    whole = 1.0 + problem.weight @ deviation**2 + problem.b0 * shift**2 + (problem.factor**2).sum(axis=(0, 2))
    kind = problem.covariance_type
    variance = (np.full(D, whole.mean()) if kind == "spherical" else whole) * grow
    limited = problem.plain and (problem.min_size > 0.0 or problem.max_size < items)
    lo, hi = [], []
    for n1, n2 in ranges:
        shift_lo = -_ANY_SHIFT if limited and 0.0 < problem.min_size >= n1 else 0.0
        shift_hi = _ANY_SHIFT if limited and items > problem.max_size <= n2 else 0.0
        reach = np.sqrt(np.maximum(variance - 1.0, 0.0)) * grow
        slopes = [reach[d] for d in range(1, D) for _ in range(d)] if kind == "full" else []
        tau = np.array([(problem.v + n1) / (variance * grow), np.full(D, (problem.v + n2) * grow)])
        if kind == "known":
            tau[:] = 1.0
        lo.append([n1, shift_lo, *(low - pad), *tau[0], *(-s for s in slopes)])
        hi.append([n2, shift_hi, *(high + pad), *tau[1], *slopes])
    count = len(ranges)
    return BoxList(
        np.array(lo, dtype=np.float64).reshape(count, -1),
        np.array(hi, dtype=np.float64).reshape(count, -1),
        np.full(count, UNBOUNDED),
        np.zeros((count, items), dtype=np.bool_),
        np.ones((count, items), dtype=np.bool_),
        np.arange(count),
    )
