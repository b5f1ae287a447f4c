"""Kernels of the one-dimensional pricing problem: branch and bound over the cluster mean.

For groups g of n_g items with mean a_g and scatter s_g,  u_g(m) = -(s_g + n_g (m - a_g)^2) / (2v) - lambda_g  is what
g adds to a cluster with mean m, and c(S) - lambda(S) = max over m of sum_S u_g(m), attained at the mean m_S of S. At
any other m the sum falls short by n_S (m_S - m)^2 / (2v). Hence for every S whose mean lies within h of m

    c(S) - lambda(S) <= sum_{g in S} [u_g(m) + n_g h^2 / (2v)],

a problem of fixed weights (`subsets`) for each interval of means. Halving the intervals makes the excess vanish.
Rounding: every weight is raised by the error bound of its own evaluation, so that far points cost nobody else.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.oracles.subsets import Floats, Ints, best_subset

MAX_OPEN_INTERVALS = 4096
MAX_CLIMBS = 8
SUBSET_NODES = 20_000


@njit(cache=True, nogil=True)
def raised_weights(m: float, reach: float, groups: Floats, half_precision: float, out: Floats) -> None:
    """u_g(m) + n_g reach^2 / (2v), rounded outwards. Rows of `groups`: a, s, n, lambda, |lambda|, error of a."""
    for g in range(groups.shape[1]):
        distance = abs(m - groups[0, g])
        n = groups[2, g]
        fall = (groups[1, g] + n * distance * distance) * half_precision
        excess = n * reach * reach * half_precision
        shift = 2.0 * distance * n * groups[5, g] * half_precision
        # At most n + 12 roundings lie behind any of the numbers; 2^-51 = 4 units leaves room for the margin's own.
        margin = (n + 12.0) * 2.0**-51 * (fall + excess + groups[4, g]) + 2.0 * shift
        out[g] = excess - fall - groups[3, g] + margin


@njit(cache=True, nogil=True)
def reduced_value(
    chosen: NDArray[np.bool_], groups: Floats, half_precision: float, pair_a: Ints, pair_b: Ints, reward: Floats
) -> tuple[float, float]:
    """(c(S) - lambda(S), mean of S) in plain arithmetic; (0, nan) for the empty set."""
    n = total = 0.0
    for g in range(len(chosen)):
        if chosen[g]:
            n += groups[2, g]
            total += groups[2, g] * groups[0, g]
    if n == 0.0:
        return 0.0, np.nan
    mean = total / n
    value = 0.0
    for g in range(len(chosen)):
        if chosen[g]:
            distance = mean - groups[0, g]
            value -= (groups[1, g] + groups[2, g] * distance * distance) * half_precision + groups[3, g]
    for p in range(len(pair_a)):
        if chosen[pair_a[p]] and chosen[pair_b[p]]:
            value += reward[p]
    return value, mean


@njit(cache=True, nogil=True)
def _keep(chosen: NDArray[np.bool_], value: float, count: int, columns: NDArray[np.bool_], values: Floats) -> int:
    """Store a column among the best distinct ones; returns how many there are."""
    worst = 0
    for c in range(count):
        if values[c] < values[worst]:
            worst = c
        if values[c] == value:
            same = True
            for g in range(len(chosen)):
                same &= columns[c, g] == chosen[g]
            if same:
                return count
    if count == len(values) and value <= values[worst]:
        return count
    place = count if count < len(values) else worst
    values[place] = value
    for g in range(len(chosen)):
        columns[place, g] = chosen[g]
    return max(count, place + 1)


@njit(cache=True, nogil=True)
def climb(
    means: Floats,
    groups: Floats,
    half_precision: float,
    low: float,
    high: float,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    columns: NDArray[np.bool_],
    values: Floats,
) -> int:
    """Alternate between the best set for a mean and the mean of that set, from every given mean."""
    n_groups = groups.shape[1]
    w = np.empty(n_groups)
    chosen = np.zeros(n_groups, np.bool_)
    count = 0
    for start in means:
        m, last = start, -np.inf
        for _ in range(MAX_CLIMBS):
            raised_weights(m, 0.0, groups, half_precision, w)
            _, found = best_subset(w, groups[2], low, high, pair_a, pair_b, reward, -np.inf, 200, chosen)
            if found == -np.inf:
                break
            value, m = reduced_value(chosen, groups, half_precision, pair_a, pair_b, reward)
            if np.isnan(m) or value <= last:
                break
            last = value
            count = _keep(chosen, value, count, columns, values)
    return count


@njit(cache=True, nogil=True)
def price(
    start: float,
    end: float,
    groups: Floats,
    half_precision: float,
    low: float,
    high: float,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    target: float,
    tolerance: float,
    max_nodes: int,
    columns: NDArray[np.bool_],
    values: Floats,
) -> tuple[float, int, int]:
    """Certified upper bound of the pricing problem over means in [start, end], number of columns kept, nodes."""
    n_groups = groups.shape[1]
    size = groups[2]
    w = np.empty(n_groups)
    chosen = np.zeros(n_groups, np.bool_)
    left, right, above = np.empty(MAX_OPEN_INTERVALS), np.empty(MAX_OPEN_INTERVALS), np.empty(MAX_OPEN_INTERVALS)
    left[0], right[0], above[0] = start, end, np.inf
    n_open, nodes, count = 1, 0, 0
    best, closed = -np.inf, -np.inf
    while n_open > 0:
        if nodes >= max_nodes or n_open + 2 > MAX_OPEN_INTERVALS:
            for i in range(n_open):
                closed = max(closed, above[i])
            break
        n_open -= 1
        a, b, inherited = left[n_open], right[n_open], above[n_open]
        cutoff = max(target, best + tolerance)
        if inherited <= cutoff:
            closed = max(closed, inherited)
            continue
        nodes += 1
        m = a + 0.5 * (b - a)
        reach = max(b - m, m - a) * (1.0 + 2.0**-50)
        raised_weights(m, reach, groups, half_precision, w)
        bound, found = best_subset(w, size, low, high, pair_a, pair_b, reward, cutoff, SUBSET_NODES, chosen)
        bound = min(bound, inherited)
        if found > -np.inf:
            value, mean = reduced_value(chosen, groups, half_precision, pair_a, pair_b, reward)
            best = max(best, value)
            if value > target:
                count = _keep(chosen, value, count, columns, values)
        if bound <= max(target, best + tolerance) or m <= a or m >= b:
            closed = max(closed, bound)
            continue
        # The half with the mean of the set found comes first: it is where good columns are.
        first = 1 if found > -np.inf and mean < m else 0
        for half in (first, 1 - first):
            left[n_open], right[n_open], above[n_open] = (a, m, bound) if half == 0 else (m, b, bound)
            n_open += 1
    return closed, count, nodes
