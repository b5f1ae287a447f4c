"""Kernels that list all columns above a threshold, with the interval bounds of `interval_pricing`."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.oracles.interval_pricing import MAX_OPEN_INTERVALS, SUBSET_NODES, raised_weights, reduced_value
from certimap.oracles.subsets import FREE, Floats, Ints, ascending, best_subset, fill, linearise


@njit(cache=True, nogil=True)
def _list_sets(
    w: Floats,
    groups: Floats,
    half_precision: float,
    low: float,
    high: float,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    threshold: float,
    span: tuple[float, float],
    columns: NDArray[np.bool_],
    count: int,
    max_steps: int,
) -> tuple[int, int]:
    """Append the admissible sets with relaxed weight >= threshold, reduced value > threshold and mean in the span.

    With the knapsack's break value as size multiplier, a set is the best relaxed set with some groups flipped, and
    each flip costs at least |weight|: the sets within budget are walked through in order of cost.
    Returns (number of columns or -1 where they do not fit, steps).
    """
    n_groups = len(w)
    state = np.full(n_groups, FREE)
    share, adjusted, mu = np.empty(n_groups), np.empty(n_groups), np.empty(len(pair_a))
    rate, constant, scale = 0.0, 0.0, 0.0
    bound, feasible = 0.0, True
    for _ in range(2):  # the size limits' rate first, then the pairs in view of it
        constant, scale = linearise(w, groups[2], state, pair_a, pair_b, reward, rate, adjusted, mu)
        bound, rate, _, feasible = fill(adjusted, groups[2], state, low, high, share)
    if not feasible:
        return count, 0
    cost = np.empty(n_groups)
    chosen = np.empty(n_groups, np.bool_)
    for g in range(n_groups):
        shifted = adjusted[g] - rate * groups[2, g]
        chosen[g] = shifted > 0.0
        cost[g] = abs(shifted)
    for g in range(n_groups):
        scale += abs(w[g]) + abs(adjusted[g])
    budget = constant + bound - threshold + (n_groups + len(pair_a) + 8) * 2.0**-50 * scale
    order = ascending(cost)
    path = np.empty(n_groups + 1, np.int64)
    depth, spent, position, steps = 0, 0.0, 0, 0
    fresh = True
    while True:
        steps += 1
        if steps > max_steps:
            return -1, steps
        if fresh:
            n = 0.0
            for g in range(n_groups):
                if chosen[g]:
                    n += groups[2, g]
            if low <= n <= high:
                value, mean = reduced_value(chosen, groups, half_precision, pair_a, pair_b, reward)
                # A mean at the border of two spans may be rounded into either: both take it, duplicates are harmless.
                slack = 2.0**-40 * (1.0 + abs(mean))
                if value > threshold and span[0] - slack <= mean <= span[1] + slack:
                    if count == len(columns):
                        return -1, steps
                    for g in range(n_groups):
                        columns[count, g] = chosen[g]
                    count += 1
        if position < n_groups and spent + cost[order[position]] <= budget:
            path[depth] = position
            depth += 1
            spent += cost[order[position]]
            chosen[order[position]] = not chosen[order[position]]
            position += 1
            fresh = True
            continue
        if depth == 0:
            return count, steps
        depth -= 1
        position = path[depth]
        spent -= cost[order[position]]
        chosen[order[position]] = not chosen[order[position]]
        position += 1
        fresh = False


@njit(cache=True, nogil=True)
def list_columns(
    start: float,
    end: float,
    groups: Floats,
    half_precision: float,
    low: float,
    high: float,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    threshold: float,
    resolution: float,
    max_steps: int,
    columns: NDArray[np.bool_],
) -> int:
    """All sets (low >= 1) with c(S) - lambda(S) > threshold, some twice; -1 where work or room run out.

    Intervals are halved until their excess is at most `resolution`, then their sets are walked through.
    """
    n_groups = groups.shape[1]
    size = groups[2]
    items = 0.0
    for g in range(n_groups):
        items += size[g]
    w = np.empty(n_groups)
    chosen = np.zeros(n_groups, np.bool_)
    left, right = np.empty(MAX_OPEN_INTERVALS), np.empty(MAX_OPEN_INTERVALS)
    left[0], right[0] = start, end
    n_open, count, steps = 1, 0, 0
    while n_open > 0:
        n_open -= 1
        a, b = left[n_open], right[n_open]
        m = a + 0.5 * (b - a)
        reach = max(b - m, m - a) * (1.0 + 2.0**-50)
        raised_weights(m, reach, groups, half_precision, w)
        bound, _ = best_subset(w, size, low, high, pair_a, pair_b, reward, threshold, SUBSET_NODES, chosen)
        steps += 1
        if bound <= threshold:
            continue
        if items * reach * reach * half_precision > resolution and a < m < b:
            if n_open + 2 > MAX_OPEN_INTERVALS or steps > max_steps:
                return -1
            left[n_open], right[n_open] = a, m
            left[n_open + 1], right[n_open + 1] = m, b
            n_open += 2
            continue
        count, used = _list_sets(
            w,
            groups,
            half_precision,
            low,
            high,
            pair_a,
            pair_b,
            reward,
            threshold,
            (a, b),
            columns,
            count,
            max_steps - steps,
        )
        steps += used
        if count < 0:
            return -1
    return count
