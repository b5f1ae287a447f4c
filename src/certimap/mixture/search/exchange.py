"""Exchanges between two clusters: what single moves cannot do when sizes or cannot-links bind.

A chain is a set of items in clusters a and b, closed under cannot-links between the two; its members in a go to
b and the other way round. One item gives the single move with everything it would clash with (a Kempe chain),
two give a swap.
"""

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.search.arrays import TIED, Instance, State
from certimap.mixture.search.gains import add_soft_gains, clashes, move_gains
from certimap.mixture.search.jit import kernel
from certimap.mixture.search.statistics import refresh, shift

_CANDIDATES = 5
_LONGEST_CHAIN = 64


@kernel
def exchange_pass(instance: Instance, state: State) -> bool:
    """Try chains from every item with cannot-links, then swaps of the best candidates of every pair of clusters."""
    improved = False
    for i in range(len(state.labels)):
        if instance.conflict_start[i] == instance.conflict_start[i + 1] or instance.fixed[i] >= 0:
            continue
        for k in range(instance.n_clusters):
            if k != state.labels[i] and clashes(instance, state.labels, i, k):
                improved |= try_exchange(instance, state, i, i, state.labels[i], k)
    K = instance.n_clusters
    candidates = np.empty((K, K, _CANDIDATES), dtype=np.int64)
    _find_candidates(instance, state, candidates)
    for a in range(K):
        for b in range(a + 1, K):
            for c in range(_CANDIDATES * _CANDIDATES):
                i, j = candidates[a, b, c // _CANDIDATES], candidates[b, a, c % _CANDIDATES]
                if i >= 0 and j >= 0 and state.labels[i] == a and state.labels[j] == b:
                    improved |= try_exchange(instance, state, i, j, a, b)
    return improved


@kernel
def _find_candidates(instance: Instance, state: State, candidates: IntArray) -> None:
    """For every ordered pair of clusters the items of the first that gain most, or lose least, by the move."""
    K = instance.n_clusters
    best = np.empty(candidates.shape)
    for a in range(K):
        for b in range(K):
            for c in range(_CANDIDATES):
                best[a, b, c] = -np.inf
                candidates[a, b, c] = -1
    gains = np.empty(K)
    for i in range(len(state.labels)):
        if instance.fixed[i] >= 0:
            continue
        a = state.labels[i]
        move_gains(instance, state, i, gains)
        add_soft_gains(instance, state.labels, i, gains)
        for b in range(K):
            if b == a or gains[b] <= best[a, b, _CANDIDATES - 1]:
                continue
            place = _CANDIDATES - 1
            while place > 0 and gains[b] > best[a, b, place - 1]:
                best[a, b, place] = best[a, b, place - 1]
                candidates[a, b, place] = candidates[a, b, place - 1]
                place -= 1
            best[a, b, place] = gains[b]
            candidates[a, b, place] = i


@kernel
def try_exchange(instance: Instance, state: State, first: int, second: int, a: int, b: int) -> bool:
    """Exchange the chain through one item, or through one of a and one of b; kept if allowed and better."""
    length = _close_chain(instance, state, first, second, a, b)
    kept = False
    if length > 0 and _sizes_allow(instance, state, length, a, b):
        gain = _soft_change(instance, state, length, a, b) + _trial(instance, state, length, a, b)
        if gain > 1e-9:
            _adopt_trial(instance, state, length, a, b)
            kept = True
    for e in range(abs(length)):
        state.in_chain[state.chain[e]] = 0
    return kept


@kernel
def _close_chain(instance: Instance, state: State, first: int, second: int, a: int, b: int) -> int:
    """Length of the closed chain in `state.chain`; negative if it meets a fixed item or grows too long."""
    state.chain[0] = first
    state.in_chain[first] = 1
    length = 1
    if second != first:
        state.chain[1] = second
        state.in_chain[second] = 1
        length = 2
    at = 0
    while at < length:
        i = state.chain[at]
        at += 1
        if instance.fixed[i] >= 0:
            return -length
        across = b if state.labels[i] == a else a
        for e in range(instance.conflict_start[i], instance.conflict_start[i + 1]):
            j = instance.conflict_items[e]
            if state.labels[j] == across and not state.in_chain[j]:
                if length == _LONGEST_CHAIN:
                    return -length
                state.chain[length] = j
                state.in_chain[j] = 1
                length += 1
    return length


@kernel
def _sizes_allow(instance: Instance, state: State, length: int, a: int, b: int) -> bool:
    change = 0
    for e in range(length):
        i = state.chain[e]
        change += -instance.points[i] if state.labels[i] == a else instance.points[i]
    size_a, size_b = state.points[a] + change, state.points[b] - change
    low, high = min(size_a, size_b), max(size_a, size_b)
    return bool(low >= instance.min_size and high <= instance.max_size)


@kernel
def _soft_change(instance: Instance, state: State, length: int, a: int, b: int) -> float:
    """Pairs inside the chain keep their relation, so only links to the outside count."""
    change = 0.0
    for e in range(length):
        i = state.chain[e]
        for s in range(instance.soft_start[i], instance.soft_start[i + 1]):
            j = instance.soft_items[s]
            if state.in_chain[j]:
                continue
            if state.labels[j] == state.labels[i]:
                change -= instance.soft_gain[s]
            elif state.labels[j] == a or state.labels[j] == b:
                change += instance.soft_gain[s]
    return change


@kernel
def _trial(instance: Instance, state: State, length: int, a: int, b: int) -> float:
    """Change of F if the chain is exchanged, computed in the two trial slots."""
    K = instance.n_clusters
    _copy_slot(instance, state, a, K)
    _copy_slot(instance, state, b, K + 1)
    # Insertions first: no cluster then passes through a smaller weight than before or after.
    for sign in (1.0, -1.0):
        for e in range(length):
            i = state.chain[e]
            from_a = state.labels[i] == a
            slot = K if from_a == (sign < 0.0) else K + 1
            shift(instance, state, slot, i, sign)
    refresh(instance, state, K)
    refresh(instance, state, K + 1)
    gain = state.value[K] + state.value[K + 1] - state.value[a] - state.value[b]
    if instance.kind == TIED:
        gain -= 0.5 * instance.shared_weight * (state.spread[1] - state.spread[0])
    return float(gain)


@kernel
def _adopt_trial(instance: Instance, state: State, length: int, a: int, b: int) -> None:
    K = instance.n_clusters
    for e in range(length):
        i = state.chain[e]
        state.labels[i] = b if state.labels[i] == a else a
    _copy_slot(instance, state, K, a)
    _copy_slot(instance, state, K + 1, b)


@kernel
def _copy_slot(instance: Instance, state: State, source: int, target: int) -> None:
    state.weight[target] = state.weight[source]
    state.points[target] = state.points[source]
    state.value[target] = state.value[source]
    D = instance.mean.shape[1]
    for a in range(D):
        state.mean[target, a] = state.mean[source, a]
    if instance.kind == TIED:
        source, target = int(source >= instance.n_clusters), int(target >= instance.n_clusters)
    for a in range(state.scatter.shape[1]):
        for b in range(state.scatter.shape[2]):
            state.scatter[target, a, b] = state.scatter[source, a, b]
            state.inverse[target, a, b] = state.inverse[source, a, b]
    state.spread[target] = state.spread[source]
