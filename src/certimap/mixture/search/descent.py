"""Ascent of one start: classification EM, then single moves and exchanges until none improves.

Every step keeps a feasible labelling feasible and never lowers the value, so a start may be stopped anywhere.
"""

import math

import numpy as np

from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import DIAG, FULL, KNOWN, SPHERICAL, TIED, Instance, State
from certimap.mixture.search.exchange import exchange_pass
from certimap.mixture.search.gains import add_soft_gains, allowed, move_gains
from certimap.mixture.search.jit import entry, kernel
from certimap.mixture.search.statistics import rebuild, refresh, shift, total_value

_CHUNK = 64
_MAX_EM = 100
_MAX_SWEEPS = 100
_MAX_ROUNDS = 20
_NEVER = -1e200
# Smaller differences are rounding, and accepting them could cycle.
_LEAST_GAIN = 1e-9


@entry
def ascend(instance: Instance, state: State) -> float:
    """Improve feasible labels to a local optimum of all neighbourhoods; returns the value up to `offset`."""
    classify(instance, state, _MAX_EM)
    for _ in range(_MAX_ROUNDS):
        for _ in range(_MAX_SWEEPS):
            moved = move_sweep(instance, state)
            rebuild(instance, state)
            if not moved:
                break
        exchanged = exchange_pass(instance, state)
        rebuild(instance, state)
        if not exchanged:
            break
    return total_value(instance, state) + soft_value(instance, state)


@entry
def classify(instance: Instance, state: State, most: int) -> float:
    """At most so many passes of classification EM; returns the value up to `offset`."""
    rebuild(instance, state)
    for _ in range(most):
        if not em_pass(instance, state):
            break
        rebuild(instance, state)
    return total_value(instance, state) + soft_value(instance, state)


@entry
def evaluate(instance: Instance, state: State) -> float:
    """Bring all statistics up to date with the labels; returns the value up to `offset`."""
    rebuild(instance, state)
    return total_value(instance, state) + soft_value(instance, state)


@kernel
def soft_value(instance: Instance, state: State) -> float:
    """Soft gains of all pairs that share a cluster."""
    total = 0.0
    for i in range(len(state.labels)):
        for e in range(instance.soft_start[i], instance.soft_start[i + 1]):
            if state.labels[instance.soft_items[e]] == state.labels[i]:
                total += 0.5 * instance.soft_gain[e]
    return total


@kernel
def move_sweep(instance: Instance, state: State) -> bool:
    """Give every item in turn its best allowed improving move, statistics updated after each."""
    K = instance.n_clusters
    gains = np.empty(K)
    improved = False
    for i in range(len(state.labels)):
        if instance.fixed[i] >= 0:
            continue
        move_gains(instance, state, i, gains)
        add_soft_gains(instance, state.labels, i, gains)
        source = state.labels[i]
        best, target = _LEAST_GAIN, source
        for k in range(K):
            if gains[k] > best and allowed(instance, state, i, k):
                best, target = gains[k], k
        if target != source:
            shift(instance, state, source, i, -1.0)
            shift(instance, state, target, i, 1.0)
            state.labels[i] = target
            refresh(instance, state, source)
            refresh(instance, state, target)
            improved = True
    return improved


@kernel
def em_pass(instance: Instance, state: State) -> bool:
    """Classification step at fixed pi, mu, Lambda: items take, one after the other, the best allowed cluster.

    The score of item (w, y) in cluster k is w (log pi_k + logdet Lambda_k/2) - w (y-mu_k)' Lambda_k (y-mu_k)/2 and,
    for a group, - tr(Lambda_k G)/2. Only `labels` and `points` change; the caller rebuilds the statistics.
    """
    K = instance.n_clusters
    n_items, D = instance.mean.shape
    bias, half = np.empty(K), np.empty(K)
    _score_constants(instance, state, bias, half)
    scaling = _scalings(instance, state)
    distances = np.empty((K, _CHUNK))
    block, image = np.empty((D, _CHUNK)), np.empty((D, _CHUNK))
    score = np.empty(K)
    moved = False
    for start in range(0, n_items, _CHUNK):
        size = min(_CHUNK, n_items - start)
        for p in range(size):
            for a in range(D):
                block[a, p] = instance.mean[start + p, a]
        _chunk_distances(instance, state, scaling, block, image, distances, size)
        for p in range(size):
            i = start + p
            if instance.fixed[i] >= 0:
                continue
            w, source = instance.weight[i], state.labels[i]
            for k in range(K):
                score[k] = w * (bias[k] - half[k] * distances[k, p])
            if instance.group_index[i] >= 0 and instance.kind != TIED and instance.kind != KNOWN:
                group = instance.group_scatter[instance.group_index[i]]
                for k in range(K):
                    score[k] -= half[k] * _group_trace(instance.kind, scaling[k], group)
            add_soft_gains(instance, state.labels, i, score)
            best, target = score[source] + _LEAST_GAIN, source
            for k in range(K):
                if score[k] > best and allowed(instance, state, i, k):
                    best, target = score[k], k
            if target != source:
                state.labels[i] = target
                state.points[source] -= instance.points[i]
                state.points[target] += instance.points[i]
                moved = True
    return moved


@kernel
def _score_constants(instance: Instance, state: State, bias: FloatArray, half: FloatArray) -> None:
    """log pi + logdet Lambda/2 and nu/2 (distances are measured in M^-1, Lambda = nu M^-1)."""
    D = instance.mean.shape[1]
    for k in range(instance.n_clusters):
        m = state.weight[k] + instance.a0 - 1.0
        bias[k] = math.log(m / instance.total_pseudo_weight) if m > 0.0 else _NEVER
        nu = instance.v + state.weight[k]
        if instance.kind == KNOWN:
            half[k] = 0.5
        elif instance.kind == TIED:
            half[k] = 0.5 * instance.shared_weight
        else:
            half[k] = 0.5 * nu
            bias[k] += 0.5 * (D * math.log(nu) - state.spread[k]) if nu > 0.0 else _NEVER


@kernel
def _scalings(instance: Instance, state: State) -> FloatArray:
    """Factor U of M^-1 = U'U for every block: lower triangular, or a row of diagonal entries."""
    kind, D = instance.kind, instance.mean.shape[1]
    if kind <= TIED:
        return state.inverse
    scaling = np.ones((instance.n_clusters, 1, D))
    for k in range(instance.n_clusters):
        for a in range(D):
            if kind == DIAG:
                scaling[k, 0, a] = 1.0 / math.sqrt(state.scatter[k, 0, a])
            elif kind == SPHERICAL:
                scaling[k, 0, a] = math.sqrt(D / state.scatter[k, 0, 0])
    return scaling


@kernel
def _chunk_distances(
    instance: Instance,
    state: State,
    scaling: FloatArray,
    block: FloatArray,
    image: FloatArray,
    distances: FloatArray,
    size: int,
) -> None:
    """(y-mu_k)' M_k^-1 (y-mu_k) for the points in the columns of `block`; the inner loops run over points."""
    kind, D = instance.kind, instance.mean.shape[1]
    triangular = kind <= TIED
    for k in range(instance.n_clusters):
        U = scaling[0 if kind == TIED else k]
        for p in range(size):
            distances[k, p] = 0.0
        for a in range(D):
            shift_a = 0.0
            if triangular:
                for b in range(a + 1):
                    shift_a += U[a, b] * state.mean[k, b]
            else:
                shift_a = U[0, a] * state.mean[k, a]
            for p in range(size):
                image[a, p] = -shift_a
            if triangular:
                for b in range(a + 1):
                    u = U[a, b]
                    for p in range(size):
                        image[a, p] += u * block[b, p]
            else:
                u = U[0, a]
                for p in range(size):
                    image[a, p] += u * block[a, p]
            for p in range(size):
                distances[k, p] += image[a, p] * image[a, p]


@kernel
def _group_trace(kind: int, U: FloatArray, group: FloatArray) -> float:
    """tr(M^-1 G) = sum of the squared images of G under U."""
    D = len(group)
    trace = 0.0
    for a in range(D):
        if kind != FULL:
            trace += U[0, a] * U[0, a] * group[a, a]
            continue
        for b in range(a + 1):
            for c in range(a + 1):
                trace += U[a, b] * group[b, c] * U[a, c]
    return trace
