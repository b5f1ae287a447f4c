"""Exact change of F for moving one item, in O(D^2) a cluster by the matrix determinant lemma.

With c = w (b0+n)/(b0+n+w), r = y - mu and q = r' M^-1 r:  logdet M' = logdet M + log(1 + c q).
Pooled covariance, from cluster a (c_a < 0) to b (c_b > 0), q_xy = r_x' M^-1 r_y:
det M'/det M = (1 + c_a q_aa)(1 + c_b q_bb) - c_a c_b q_ab^2.
An item with scatter of its own changes M by full rank and costs one factorisation a cluster.
"""

import math

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import DIAG, FULL, SPHERICAL, TIED, Instance, State
from certimap.mixture.search.jit import kernel
from certimap.mixture.search.statistics import add_group, invert_factor, slot_value, weight_term

# det M' >= 1 holds for every scatter of the search, so that a ratio below this is rounding.
_LEAST_RATIO = 1e-12


@kernel
def move_gains(instance: Instance, state: State, item: int, gains: FloatArray) -> None:
    """Change of F, without soft links, for moving an item to every cluster; constraints are not looked at."""
    K = instance.n_clusters
    source = state.labels[item]
    w = instance.weight[item]
    if w == 0.0:
        for k in range(K):
            gains[k] = 0.0
        return
    if instance.kind == TIED:
        _pooled_gains(instance, state, item, gains)
        return
    kind, a0, b0, v, Nt = instance.kind, instance.a0, instance.b0, instance.v, instance.total_pseudo_weight
    D = instance.mean.shape[1]
    y = instance.mean[item]
    group = instance.group_index[item]
    n = state.weight[source]
    spread = 0.0
    for pass_ in range(K):
        # The source comes first: what its removal brings is part of every other cluster's gain.
        k = source if pass_ == 0 else (pass_ - 1 if pass_ <= source else pass_)
        sign = -1.0 if pass_ == 0 else 1.0
        n = state.weight[k]
        c = sign * w * (b0 + n) / (b0 + n + sign * w)
        if group >= 0:
            spread = _group_spread(kind, state.scatter[k], instance.group_scatter[group], sign, c, y, state.mean[k])
        elif kind == FULL:
            q = _squared_distance(state.inverse[k], y, state.mean[k])
            spread = state.spread[k] + math.log(max(1.0 + c * q, _LEAST_RATIO))
        else:
            spread = _simple_spread(kind, state.scatter[k], c, y, state.mean[k])
        change = slot_value(kind, a0, v, Nt, D, n + sign * w, spread) - state.value[k]
        gains[k] = change if pass_ == 0 else change + gains[source]
    gains[source] = 0.0


@kernel
def _squared_distance(inverse: FloatArray, y: FloatArray, mean: FloatArray) -> float:
    q = 0.0
    for a in range(len(y)):
        t = 0.0
        for b in range(a + 1):
            t += inverse[a, b] * (y[b] - mean[b])
        q += t * t
    return q


@kernel
def _simple_spread(kind: int, M: FloatArray, c: float, y: FloatArray, mean: FloatArray) -> float:
    """Spread of a diagonal or a trace after the rank-one change."""
    D = len(y)
    if kind == DIAG:
        spread, product = 0.0, 1.0
        for a in range(D):
            product *= max(M[0, a] + c * (y[a] - mean[a]) ** 2, 1.0)
            # One logarithm for many factors, taken before the product can overflow.
            if product > 1e100:
                spread += math.log(product)
                product = 1.0
        return spread + math.log(product)
    trace = M[0, 0]
    for a in range(D):
        trace += c * (y[a] - mean[a]) ** 2
    return D * math.log(max(trace, float(D)) / D) if kind == SPHERICAL else trace


@kernel
def _group_spread(
    kind: int, M: FloatArray, group: FloatArray, sign: float, c: float, y: FloatArray, mean: FloatArray
) -> float:
    changed = M.copy()
    add_group(kind, changed, group, sign)
    if kind != FULL:
        return _simple_spread(kind, changed, c, y, mean)
    for a in range(len(y)):
        for b in range(a + 1):
            changed[a, b] += c * (y[a] - mean[a]) * (y[b] - mean[b])
    return invert_factor(changed, np.empty_like(changed))


@kernel
def _pooled_gains(instance: Instance, state: State, item: int, gains: FloatArray) -> None:
    b0, D = instance.b0, instance.mean.shape[1]
    y, w, inverse = instance.mean[item], instance.weight[item], state.inverse[0]
    source = state.labels[item]
    own, other = np.empty(D), np.empty(D)
    _whiten(inverse, y, state.mean[source], own)
    n = state.weight[source]
    c_own = -w * (b0 + n) / (b0 + n - w)
    q_own = 0.0
    for a in range(D):
        q_own += own[a] * own[a]
    removal = weight_term(instance.a0, instance.total_pseudo_weight, n - w) - state.value[source]
    for k in range(instance.n_clusters):
        if k == source:
            gains[k] = 0.0
            continue
        _whiten(inverse, y, state.mean[k], other)
        n = state.weight[k]
        c = w * (b0 + n) / (b0 + n + w)
        q, cross = 0.0, 0.0
        for a in range(D):
            q += other[a] * other[a]
            cross += own[a] * other[a]
        ratio = (1.0 + c_own * q_own) * (1.0 + c * q) - c_own * c * cross * cross
        insertion = weight_term(instance.a0, instance.total_pseudo_weight, n + w) - state.value[k]
        gains[k] = removal + insertion - 0.5 * instance.shared_weight * math.log(max(ratio, _LEAST_RATIO))


@kernel
def _whiten(inverse: FloatArray, y: FloatArray, mean: FloatArray, out: FloatArray) -> None:
    for a in range(len(y)):
        t = 0.0
        for b in range(a + 1):
            t += inverse[a, b] * (y[b] - mean[b])
        out[a] = t


@kernel
def soft_pull(instance: Instance, labels: IntArray, item: int, cluster: int) -> float:
    """Sum of the soft gains an item has from sharing the given cluster."""
    pull = 0.0
    for e in range(instance.soft_start[item], instance.soft_start[item + 1]):
        if labels[instance.soft_items[e]] == cluster:
            pull += instance.soft_gain[e]
    return pull


@kernel
def add_soft_gains(instance: Instance, labels: IntArray, item: int, gains: FloatArray) -> None:
    """Add the change in soft links for moving an item to every cluster."""
    if instance.soft_start[item] == instance.soft_start[item + 1]:
        return
    own = soft_pull(instance, labels, item, labels[item])
    for k in range(instance.n_clusters):
        if k != labels[item]:
            gains[k] += soft_pull(instance, labels, item, k) - own


@kernel
def allowed(instance: Instance, state: State, item: int, cluster: int) -> bool:
    """Whether moving an item of another cluster here keeps cannot-links and the size bounds."""
    points = instance.points[item]
    if state.points[cluster] + points > instance.max_size:
        return False
    if state.points[state.labels[item]] - points < instance.min_size:
        return False
    return not clashes(instance, state.labels, item, cluster)


@kernel
def clashes(instance: Instance, labels: IntArray, item: int, cluster: int) -> bool:
    """Whether a cannot-linked item is in the cluster."""
    for e in range(instance.conflict_start[item], instance.conflict_start[item + 1]):
        if labels[instance.conflict_items[e]] == cluster:
            return True
    return False
