"""Cluster statistics under insertion and removal of items: M changes by a rank-one term.

With r = y - mu and w the item's weight (negative for a removal), n the cluster's weight before,

    mu' = mu + w r/(b0+n+w),     M' = M + (w (b0+n)/(b0+n+w)) r r' + (scatter of the item about its own mean).
"""

import math

import numpy as np

from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import DIAG, KNOWN, SPHERICAL, TIED, Instance, State
from certimap.mixture.search.jit import kernel


@kernel
def invert_factor(M: FloatArray, inverse: FloatArray) -> float:
    """Inverse Cholesky factor of M >= I into the lower triangle of `inverse`; returns logdet M.

    No pivot of such a matrix is below 1, so a smaller one is rounding and is put back to 1.
    """
    D = len(M)
    determinant = 0.0
    for i in range(D):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= inverse[i, k] * inverse[j, k]
            if i == j:
                pivot = max(s, 1.0)
                determinant += math.log(pivot)
                inverse[i, i] = math.sqrt(pivot)
            else:
                inverse[i, j] = s / inverse[j, j]
    # The factor is replaced by its inverse column by column: a column needs only entries not yet replaced.
    for j in range(D):
        diagonal = 1.0 / inverse[j, j]
        for i in range(j + 1, D):
            s = inverse[i, j] * diagonal
            for k in range(j + 1, i):
                s += inverse[i, k] * inverse[k, j]
            inverse[i, j] = -s / inverse[i, i]
        inverse[j, j] = diagonal
    return determinant


@kernel
def weight_term(a0: float, total_pseudo_weight: float, n: float) -> float:
    """m log(m/Nt), m = n + a0 - 1."""
    m = n + a0 - 1.0
    return m * math.log(m / total_pseudo_weight) if m > 0.0 else 0.0


@kernel
def slot_value(kind: int, a0: float, v: float, total_pseudo_weight: float, D: int, n: float, spread: float) -> float:
    """c(S) up to constants, from weight and spread; for a pooled covariance only the part of the cluster alone."""
    value = weight_term(a0, total_pseudo_weight, n)
    if kind == KNOWN:
        return value - 0.5 * spread
    nu = v + n
    if kind == TIED or nu <= 0.0:
        return value
    return value + 0.5 * nu * (D * (math.log(nu) - 1.0) - spread)


@kernel
def shift(instance: Instance, state: State, slot: int, item: int, sign: float) -> None:
    """Insert (sign 1) or remove (sign -1) an item; `refresh` the slot before its value is read."""
    w = sign * instance.weight[item]
    n = state.weight[slot]
    state.weight[slot] = n + w
    state.points[slot] += int(sign) * instance.points[item]
    if w == 0.0:
        return
    b0 = instance.b0
    D = instance.mean.shape[1]
    mean, y = state.mean[slot], instance.mean[item]
    coefficient = w * (b0 + n) / (b0 + n + w)
    M = state.scatter[block_of(instance.kind, instance.n_clusters, slot)]
    _add_square(instance.kind, M, coefficient, y, mean)
    for a in range(D):
        mean[a] += w / (b0 + n + w) * (y[a] - mean[a])
    group = instance.group_index[item]
    if group >= 0:
        add_group(instance.kind, M, instance.group_scatter[group], sign)


@kernel
def add_group(kind: int, M: FloatArray, group: FloatArray, sign: float) -> None:
    """Add the scatter of a group about its own mean to M as the covariance type stores it."""
    D = len(group)
    for a in range(D):
        if kind <= TIED:
            for b in range(a + 1):
                M[a, b] += sign * group[a, b]
        elif kind == DIAG:
            M[0, a] += sign * group[a, a]
        else:
            M[0, 0] += sign * group[a, a]


@kernel
def block_of(kind: int, n_clusters: int, slot: int) -> int:
    """Row of `scatter` that a slot writes to: its own, or the pooled matrix, or the trial copy of that."""
    if kind == TIED:
        return 0 if slot < n_clusters else 1
    return slot


@kernel
def refresh(instance: Instance, state: State, slot: int) -> None:
    """Bring factor, spread and value of a slot up to date with its statistics."""
    kind, D = instance.kind, instance.mean.shape[1]
    block = block_of(kind, instance.n_clusters, slot)
    M = state.scatter[block]
    spread = 0.0
    if kind <= TIED:
        spread = invert_factor(M, state.inverse[block])
    elif kind == DIAG:
        for a in range(D):
            spread += math.log(max(M[0, a], 1.0))
    elif kind == SPHERICAL:
        spread = D * math.log(max(M[0, 0], float(D)) / D)
    else:
        spread = M[0, 0]
    state.spread[block] = spread
    state.value[slot] = slot_value(
        kind, instance.a0, instance.v, instance.total_pseudo_weight, D, state.weight[slot], spread
    )


@kernel
def rebuild(instance: Instance, state: State) -> None:
    """All statistics of the clusters from the labels, free of accumulated rounding."""
    K = instance.n_clusters
    n_items, D = instance.mean.shape
    kind, b0 = instance.kind, instance.b0
    _clear(kind, K, D, state)
    for i in range(n_items):
        k = state.labels[i]
        w = instance.weight[i]
        state.weight[k] += w
        state.points[k] += instance.points[i]
        for a in range(D):
            state.mean[k, a] += w * instance.mean[i, a]
    for k in range(K):
        n = state.weight[k]
        for a in range(D):
            state.mean[k, a] /= b0 + n
    # About the posterior mean, sum w (y-mu)(y-mu)' + b0 mu mu' equals sum w y y' - (b0+n) mu mu'.
    for i in range(n_items):
        k = state.labels[i]
        M = state.scatter[block_of(kind, K, k)]
        _add_square(kind, M, instance.weight[i], instance.mean[i], state.mean[k])
        if instance.group_index[i] >= 0:
            add_group(kind, M, instance.group_scatter[instance.group_index[i]], 1.0)
    origin = np.zeros(D)
    for k in range(K):
        M = state.scatter[block_of(kind, K, k)]
        _add_square(kind, M, b0, state.mean[k], origin)
    for k in range(K):
        refresh(instance, state, k)


@kernel
def _clear(kind: int, K: int, D: int, state: State) -> None:
    """Statistics of K empty clusters: M = W0^-1 = I, as a trace D; nothing if Lambda is known."""
    for k in range(K):
        state.weight[k] = 0.0
        state.points[k] = 0
        for a in range(D):
            state.mean[k, a] = 0.0
        M = state.scatter[block_of(kind, K, k)]
        for a in range(M.shape[0]):
            for b in range(M.shape[1]):
                M[a, b] = 1.0 if a == b or kind == DIAG else 0.0
        if kind > DIAG:
            M[0, 0] = D if kind == SPHERICAL else 0.0


@kernel
def _add_square(kind: int, M: FloatArray, w: float, y: FloatArray, centre: FloatArray) -> None:
    D = len(y)
    for a in range(D):
        r = w * (y[a] - centre[a])
        if kind <= TIED:
            for b in range(a + 1):
                M[a, b] += r * (y[b] - centre[b])
        elif kind == DIAG:
            M[0, a] += r * (y[a] - centre[a])
        else:
            M[0, 0] += r * (y[a] - centre[a])


@kernel
def total_value(instance: Instance, state: State) -> float:
    """Value of the labelling up to `offset`, without soft links; slots must be fresh."""
    total = 0.0
    for k in range(instance.n_clusters):
        total += state.value[k]
    if instance.kind == TIED:
        total -= 0.5 * instance.shared_weight * state.spread[0]
    return total
