"""The best admissible subset for fixed weights: the discrete half of a pricing problem.

    maximise  sum_g w_g x_g + sum_p r_p x_a(p) x_b(p)   over  x in {0,1}^G,  low <= sum_g n_g x_g <= high

with r_p = -inf for pairs that must not be together. Depth-first search. The relaxation of a node replaces the terms of
pairs of free groups by linear ones,

    r > 0:  r x_a x_b <= r (x_a + x_b) / 2,
    r < 0:  r x_a x_b <= -mu (x_a + x_b - 1)  for any 0 <= mu <= -r,

with mu just large enough to make one of the two unattractive, and solves the rest as a knapsack LP (groups in the order
of weight per item), which is exact without pairs and with groups of one item.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.oracles.partition import ColumnRules

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Marks = NDArray[np.int8]

FREE, IN, OUT = np.int8(0), np.int8(1), np.int8(-1)


@njit(cache=True, nogil=True)
def ascending(keys: Floats) -> Ints:
    """Positions in the order of the keys; one compiled sort serves all kernels."""
    return np.argsort(keys)


@njit(cache=True, nogil=True)
def linearise(
    w: Floats,
    size: Floats,
    state: Marks,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    rate: float,
    adjusted: Floats,
    mu: Floats,
) -> tuple[float, float]:
    """Weights of the free groups in the linear relaxation; returns its constant and the magnitude of the pair terms.

    `rate` is the value per item that the size limits cost or pay: a group is attractive above it.
    """
    constant = magnitude = 0.0
    for g in range(len(w)):
        adjusted[g] = w[g]
        if state[g] == IN:
            constant += w[g]
    for p in range(len(pair_a)):
        a, b, r = pair_a[p], pair_b[p], reward[p]
        mu[p] = 0.0
        if state[a] == OUT or state[b] == OUT:
            continue
        if r > -np.inf:
            magnitude += abs(r)
        if state[a] == IN and state[b] == IN:
            constant += r
        elif state[a] == IN:
            adjusted[b] += r
        elif state[b] == IN:
            adjusted[a] += r
        elif r > 0.0:
            adjusted[a] += 0.5 * r
            adjusted[b] += 0.5 * r
    for p in range(len(pair_a)):
        a, b = pair_a[p], pair_b[p]
        if reward[p] < 0.0 and state[a] == FREE and state[b] == FREE:
            mu[p] = max(0.0, min(-reward[p], adjusted[a] - rate * size[a], adjusted[b] - rate * size[b]))
            adjusted[a] -= mu[p]
            adjusted[b] -= mu[p]
            constant += mu[p]
            magnitude += mu[p] + abs(rate) * (size[a] + size[b])
    return constant, magnitude


@njit(cache=True, nogil=True)
def fill(
    adjusted: Floats, size: Floats, state: Marks, low: float, high: float, share: Floats
) -> tuple[float, float, int, bool]:
    """The knapsack LP over the free groups: shares x and the value per item at which it breaks off.

    Returns (value of the free part, break value per item, fractional group or -1, feasible).
    """
    used = 0.0
    total = 0.0
    for g in range(len(size)):
        share[g] = 0.0
        if state[g] == IN:
            used += size[g]
        elif state[g] == FREE and adjusted[g] > 0.0:
            share[g] = 1.0
            total += adjusted[g]
            used += size[g]
    if low <= used <= high:
        return total, 0.0, -1, True
    # Start again: groups in the order of value per item until the binding limit is reached.
    limit = high if used > high else low
    used = 0.0
    total = 0.0
    for g in range(len(size)):
        share[g] = 0.0
        if state[g] == IN:
            used += size[g]
    if used > high:
        return -np.inf, 0.0, -1, False
    order = ascending(-adjusted / size)
    rate = 0.0
    for g in order:
        if state[g] != FREE or used >= limit:
            continue
        if adjusted[g] == -np.inf:
            break
        part = min(1.0, (limit - used) / size[g])
        share[g] = part
        used += part * size[g]
        total += part * adjusted[g]
        rate = adjusted[g] / size[g]
        if part < 1.0:
            return total, rate, g, True
    return total, rate, -1, used >= low


@njit(cache=True, nogil=True)
def _loosest_pair(state: Marks, share: Floats, pair_a: Ints, pair_b: Ints, reward: Floats, mu: Floats) -> int:
    """A free group of the pair where the linear term gives away most, or -1 where all are exact."""
    worst, group = 0.0, -1
    for p in range(len(pair_a)):
        a, b, r = pair_a[p], pair_b[p], reward[p]
        if state[a] != FREE or state[b] != FREE:
            continue
        both = min(share[a], share[b])
        if r > 0.0:
            loss = 0.5 * r * abs(share[a] - share[b])
        else:
            loss = -mu[p] * (share[a] + share[b] - 1.0) - (r * both if both > 0.0 else 0.0)
        if loss > worst:
            worst, group = loss, a if share[a] >= share[b] else b
    return group


@njit(cache=True, nogil=True)
def best_subset(
    w: Floats,
    size: Floats,
    low: float,
    high: float,
    pair_a: Ints,
    pair_b: Ints,
    reward: Floats,
    floor: float,
    max_nodes: int,
    chosen: NDArray[np.bool_],
) -> tuple[float, float]:
    """Search sets worth more than `floor`; returns (upper bound, value found or -inf), `chosen` holds the set found.

    The bound carries the margin of its own summation, not that of the weights.
    """
    n_groups = len(w)
    margin = (n_groups + len(pair_a) + 8) * 2.0**-51
    state = np.zeros(n_groups, np.int8)
    adjusted, share, mu = np.empty(n_groups), np.empty(n_groups), np.empty(len(pair_a))
    path = np.empty(n_groups + 1, np.int64)
    second = np.zeros(n_groups + 1, np.bool_)
    depth = 0
    best, pruned, root = -np.inf, -np.inf, np.inf
    nodes = 0
    linearise(w, size, state, pair_a, pair_b, reward, 0.0, adjusted, mu)
    _, rate, _, _ = fill(adjusted, size, state, low, high, share)
    while True:
        base, scale = linearise(w, size, state, pair_a, pair_b, reward, rate, adjusted, mu)
        rest, rate, fractional, feasible = fill(adjusted, size, state, low, high, share)
        bound = base + rest
        if feasible:
            for g in range(n_groups):
                if state[g] == IN or share[g] > 0.0:
                    scale += abs(w[g])
            bound += margin * (scale + abs(base) + abs(rest))
        else:
            bound = -np.inf
        if nodes == 0:
            root = bound
        nodes += 1
        if nodes > max_nodes:
            return root, best
        branch = -1
        if bound > max(best, floor):
            branch = _loosest_pair(state, share, pair_a, pair_b, reward, mu)
            if branch < 0:
                branch = fractional
            if branch < 0:
                best = bound
                for g in range(n_groups):
                    chosen[g] = state[g] == IN or share[g] > 0.5
        else:
            pruned = max(pruned, bound)
        if branch >= 0:
            path[depth] = branch
            second[depth] = False
            state[branch] = IN
            depth += 1
            continue
        while depth > 0 and second[depth - 1]:
            depth -= 1
            state[path[depth]] = FREE
        if depth == 0:
            return max(best, pruned), best
        second[depth - 1] = True
        state[path[depth - 1]] = OUT


def heaviest_set(weights: Floats, rules: ColumnRules, max_nodes: int) -> tuple[float, NDArray[np.bool_] | None]:
    """Upper bound of sum_{i in S} w_i over the admissible sets, and the set found (over items)."""
    group_weights, magnitude = rules.summed(weights), rules.summed(np.abs(weights))
    margin = 2.0**-51 * float((rules.sizes * magnitude).sum())
    chosen = np.zeros(rules.n_groups, dtype=bool)
    bound, found = best_subset(
        group_weights,
        rules.sizes.astype(float),
        float(rules.min_size),
        float(rules.max_size),
        np.ascontiguousarray(rules.apart[:, 0]),
        np.ascontiguousarray(rules.apart[:, 1]),
        np.full(len(rules.apart), -np.inf),
        -np.inf,
        max_nodes,
        chosen,
    )
    return float(bound) + margin, chosen[rules.group] if found > -np.inf else None
