"""From any labels with the fixed items in place to labels that satisfy sizes and cannot-links."""

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import Instance
from certimap.mixture.search.gains import clashes
from certimap.mixture.search.jit import entry, kernel
from certimap.mixture.search.starts import squared_difference

_WORK_LIMIT = 200_000_000
_ANY_CHANGE = 1 << 60


@entry
def repair(instance: Instance, rng: np.random.Generator, labels: IntArray, seeds: FloatArray) -> bool:
    """Make the labels feasible in place; False if the search for a feasible labelling gave up."""
    K = instance.n_clusters
    points = np.zeros(K, dtype=np.int64)
    for i in range(len(labels)):
        points[labels[i]] += instance.points[i]
    for k in range(K):
        if points[k] < instance.min_size:
            _fill(instance, labels, points, seeds, k)
    return _min_conflicts(instance, rng, labels, points)


@kernel
def _fill(instance: Instance, labels: IntArray, points: IntArray, seeds: FloatArray, k: int) -> None:
    """Fill a cluster up to its minimum size with the nearest items that their clusters can spare."""
    cost = np.empty(len(labels))
    for i in range(len(labels)):
        own = squared_difference(instance.mean[i], seeds[labels[i]])
        cost[i] = squared_difference(instance.mean[i], seeds[k]) - own
    for i in np.argsort(cost, kind="mergesort"):
        if points[k] >= instance.min_size:
            return
        donor, size = labels[i], instance.points[i]
        if donor == k or instance.fixed[i] >= 0 or points[donor] - size < instance.min_size:
            continue
        if points[k] + size <= instance.max_size and not clashes(instance, labels, i, k):
            labels[i] = k
            points[donor] -= size
            points[k] += size


@kernel
def _size_violation(instance: Instance, size: int) -> int:
    return max(instance.min_size - size, 0) + max(size - instance.max_size, 0)


@kernel
def _conflicts(instance: Instance, labels: IntArray, item: int, cluster: int) -> int:
    count = 0
    for e in range(instance.conflict_start[item], instance.conflict_start[item + 1]):
        if labels[instance.conflict_items[e]] == cluster:
            count += 1
    return count


@kernel
def _violation(instance: Instance, labels: IntArray, points: IntArray) -> int:
    """Clashing pairs plus points missing or in excess."""
    twice = 0
    for i in range(len(labels)):
        twice += _conflicts(instance, labels, i, labels[i])
    total = twice // 2
    for k in range(instance.n_clusters):
        total += _size_violation(instance, points[k])
    return total


@kernel
def _min_conflicts(instance: Instance, rng: np.random.Generator, labels: IntArray, points: IntArray) -> bool:
    """Tabu search on the number of violations: best single move that is not tabu, ties drawn at random."""
    K = instance.n_clusters
    n_items = len(labels)
    violation = _violation(instance, labels, points)
    if violation == 0:
        return True
    tabu_until = np.zeros((n_items, K), dtype=np.int64)
    limit = min(1000 + 20 * n_items, _WORK_LIMIT // (n_items * K))
    least = violation
    for step in range(limit):
        best, item, target, ties = _ANY_CHANGE, 0, 0, 0.0
        for i in range(n_items):
            if instance.fixed[i] >= 0:
                continue
            source, size = labels[i], instance.points[i]
            clash = _conflicts(instance, labels, i, source)
            release = _size_violation(instance, points[source] - size) - _size_violation(instance, points[source])
            for k in range(K):
                if k == source:
                    continue
                change = release + _conflicts(instance, labels, i, k) - clash
                change += _size_violation(instance, points[k] + size) - _size_violation(instance, points[k])
                if change > best or (tabu_until[i, k] > step and violation + change >= least):
                    continue
                ties = ties + 1.0 if change == best else 1.0
                if change < best or rng.random() * ties < 1.0:
                    best, item, target = change, i, k
        if ties == 0.0:
            continue
        source = labels[item]
        labels[item] = target
        points[source] -= instance.points[item]
        points[target] += instance.points[item]
        tabu_until[item, source] = step + 3 + int(rng.random() * 10.0)
        violation += best
        least = min(least, violation)
        if violation == 0:
            return True
    return False
