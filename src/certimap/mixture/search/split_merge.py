"""Merging two clusters and splitting a third: the way out of optima that serve one cluster with two.

F is a sum over clusters, so the loss of every merge and the gain of every split are computed apart and any disjoint
triples add up exactly. ``tied`` is treated at its present shared precision, which bounds the true change from below.
Soft links and constraints are left out of the forecast; the labelling it leads to is repaired, improved and judged.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import KNOWN, TIED, Instance, new_state
from certimap.mixture.search.descent import ascend, classify, evaluate
from certimap.mixture.search.repair import repair
from certimap.mixture.search.starts import seeded_labels

_MAX_ROUNDS = 50
_SINGLE_TRIALS = 3
_SPLIT_PASSES = 20
# What a unit of weight may lose in the forecast and the ascent still win back, in nats.
_RECOVERABLE = 0.05
_LEAST_GAIN = 1e-7


class _Proposal(NamedTuple):
    """Merge cluster b into a, then split c and call its second part b."""

    gain: float
    a: int
    b: int
    c: int


def improve_by_split_merge(
    instance: Instance, rng: np.random.Generator, labels: IntArray, value: float
) -> tuple[float, IntArray]:
    """Apply merges with splits as long as they improve a feasible local optimum; `value` includes the offset."""
    recoverable = _RECOVERABLE * float(instance.weight.sum())
    for _ in range(_MAX_ROUNDS):
        proposals, parts = _forecast(instance, rng, labels)
        trials = [batch] if (batch := _disjoint(proposals)) else []
        trials += [[single] for single in proposals[:_SINGLE_TRIALS] if single.gain > -recoverable]
        for trial in trials:
            changed = _applied(instance, labels, trial, parts)
            if not repair(instance, rng, changed, _means(instance, changed)):
                continue
            state = new_state(instance, changed)
            reached = ascend(instance, state) + instance.offset
            if reached > value + _LEAST_GAIN:
                value, labels = reached, changed
                break
        else:
            break
    return value, labels


def _forecast(
    instance: Instance, rng: np.random.Generator, labels: IntArray
) -> tuple[list[_Proposal], list[NDArray[np.bool_]]]:
    """Proposals by decreasing gain, and for every cluster the items of its second part."""
    K = instance.n_clusters
    view = _at_present_precision(instance, labels)
    members = [np.flatnonzero(labels == k) for k in range(K)]
    split_gain = np.zeros(K)
    parts = [np.zeros(len(labels), dtype=np.bool_) for _ in range(K)]
    for k in range(K):
        if len(members[k]) < 2:
            continue
        pair = _free_pair(view, members[k])
        halves, _ = seeded_labels(pair, rng, True, False)
        after = classify(pair, new_state(pair, halves), _SPLIT_PASSES)
        split_gain[k] = after - evaluate(pair, new_state(pair, np.zeros_like(halves)))
        parts[k][members[k][halves == 1]] = True
    # A cluster with fixed items cannot move elsewhere.
    pinned = np.isin(np.arange(K), instance.fixed)
    proposals = []
    for a, b in combinations(range(K), 2):
        if pinned[b] or (not pinned[a] and len(members[a]) < len(members[b])):
            a, b = b, a
        if pinned[b]:
            continue
        loss = 0.0
        if len(members[b]):
            both = np.concatenate([members[a], members[b]])
            pair = _free_pair(view, both)
            apart = np.repeat([0, 1], [len(members[a]), len(members[b])])
            loss = evaluate(pair, new_state(pair, apart)) - evaluate(pair, new_state(pair, np.zeros_like(apart)))
        others = [c for c in range(K) if c != b and (c != a or not len(members[b]))]
        proposals += [_Proposal(split_gain[c] - loss, a, b, c) for c in others if parts[c].any()]
    return sorted(proposals, key=lambda proposal: -proposal.gain), parts


def _disjoint(proposals: list[_Proposal]) -> list[_Proposal]:
    """Greedy choice of improving proposals that share no cluster."""
    chosen: list[_Proposal] = []
    taken: set[int] = set()
    for proposal in proposals:
        touched = {proposal.a, proposal.b, proposal.c}
        if proposal.gain > _LEAST_GAIN and not touched & taken:
            chosen.append(proposal)
            taken |= touched
    return chosen


def _applied(instance: Instance, labels: IntArray, trial: list[_Proposal], parts: list[NDArray[np.bool_]]) -> IntArray:
    changed = labels.copy()
    free = instance.fixed < 0
    for _, a, b, c in trial:
        changed[free & (labels == b)] = a
        changed[free & parts[c]] = b
    return changed


def _free_pair(instance: Instance, members: IntArray) -> Instance:
    """The same objective for two clusters that share the given items, without constraints."""
    none, count = np.zeros(0, dtype=np.int64), len(members)
    return instance._replace(
        n_clusters=2,
        weight=instance.weight[members],
        points=instance.points[members],
        mean=instance.mean[members],
        group_index=instance.group_index[members],
        conflict_start=np.zeros(count + 1, dtype=np.int64),
        conflict_items=none,
        soft_start=np.zeros(count + 1, dtype=np.int64),
        soft_items=none,
        soft_gain=np.zeros(0),
        fixed=np.full(count, -1),
        order=np.arange(count),
        min_size=0,
        max_size=int(instance.points.sum()),
    )


def _at_present_precision(instance: Instance, labels: IntArray) -> Instance:
    """The instance itself; for a shared precision the one in which it is known, in whitened coordinates."""
    if instance.kind != TIED:
        return instance
    state = new_state(instance, labels.copy())
    evaluate(instance, state)
    whitening = np.sqrt(instance.shared_weight) * np.tril(state.inverse[0])
    return instance._replace(
        kind=KNOWN,
        mean=np.ascontiguousarray(instance.mean @ whitening.T),
        group_scatter=np.ascontiguousarray(whitening @ instance.group_scatter @ whitening.T),
    )


def _means(instance: Instance, labels: IntArray) -> FloatArray:
    K = instance.n_clusters
    weight = np.bincount(labels, weights=instance.weight, minlength=K)
    totals = [np.bincount(labels, weights=instance.weight * y, minlength=K) for y in instance.mean.T]
    return np.ascontiguousarray(np.stack(totals, axis=1) / np.where(weight > 0.0, weight, 1.0)[:, None])
