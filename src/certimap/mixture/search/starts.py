"""Labellings a start begins with: nearest of random seeds, or a disturbed good labelling."""

import math

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.search.arrays import Instance
from certimap.mixture.search.gains import clashes
from certimap.mixture.search.jit import entry, kernel


@entry
def seeded_labels(
    instance: Instance, rng: np.random.Generator, spread_out: bool, blurred: bool
) -> tuple[IntArray, FloatArray]:
    """Nearest-seed labels and the seeds: the means of fixed items, for other clusters random items.

    With `spread_out` an item becomes a seed with probability proportional to its weight times the squared distance to
    the seeds so far (k-means++), otherwise to its weight. `blurred` labels are random, nearer seeds more likely: on
    small problems few seeds differ, and nearest-seed labels alone all lead to the same optima.
    """
    K, D = instance.n_clusters, instance.mean.shape[1]
    n_items = len(instance.weight)
    seeds = np.zeros((K, D))
    taken = np.zeros(K)
    distance, chance = np.empty(n_items), np.empty(n_items)
    for i in range(n_items):
        distance[i] = np.inf
        k = instance.fixed[i]
        if k >= 0:
            taken[k] += 1.0
            for a in range(D):
                seeds[k, a] += (instance.mean[i, a] - seeds[k, a]) / taken[k]
    for k in range(K):
        if taken[k] > 0.0:
            _lower_distances(instance, seeds[k], distance)
    for k in range(K):
        if taken[k] == 0.0:
            for i in range(n_items):
                weighted = spread_out and distance[i] < np.inf
                chance[i] = instance.weight[i] * (distance[i] if weighted else 1.0)
            drawn = _draw(rng, chance)
            for a in range(D):
                seeds[k, a] = instance.mean[drawn, a]
            _lower_distances(instance, seeds[k], distance)
    return _constrained_nearest(instance, rng, seeds, blurred), seeds


@kernel
def _constrained_nearest(instance: Instance, rng: np.random.Generator, seeds: FloatArray, blurred: bool) -> IntArray:
    """Greedy labels: fixed items, then by decreasing number of cannot-links, each to its nearest allowed seed.

    An item that no cluster may take goes to the nearest seed and is left to the repair.
    """
    K = instance.n_clusters
    n_items = len(instance.weight)
    labels = instance.fixed.copy()
    points = np.zeros(K, dtype=np.int64)
    for i in range(n_items):
        if labels[i] >= 0:
            points[labels[i]] += instance.points[i]
    for position in range(n_items):
        i = instance.order[position]
        if labels[i] >= 0:
            continue
        best, nearest = np.inf, np.inf
        target, fallback = -1, 0
        for k in range(K):
            q = squared_difference(instance.mean[i], seeds[k])
            if blurred:
                q *= -math.log(1.0 - rng.random())
            if q < nearest:
                nearest, fallback = q, k
            fits = points[k] + instance.points[i] <= instance.max_size
            if q < best and fits and not clashes(instance, labels, i, k):
                best, target = q, k
        labels[i] = target if target >= 0 else fallback
        points[labels[i]] += instance.points[i]
    return labels


@entry
def disturbed_labels(instance: Instance, rng: np.random.Generator, labels: IntArray) -> tuple[IntArray, FloatArray]:
    """A copy of the labels with a random part relabelled or with one cluster dissolved and reopened elsewhere.

    Constraints are not looked at: the result goes through the repair.
    """
    K = instance.n_clusters
    changed = labels.copy()
    seeds = _means(instance, changed)
    if rng.random() < 0.5 or K == 1:
        share = 0.02 + 0.4 * rng.random() ** 2
        for i in range(len(changed)):
            if instance.fixed[i] < 0 and rng.random() < share:
                changed[i] = int(rng.random() * K)
        return changed, seeds
    dissolved = int(rng.random() * K)
    for i in range(len(changed)):
        if changed[i] == dissolved and instance.fixed[i] < 0:
            best = np.inf
            for k in range(K):
                q = squared_difference(instance.mean[i], seeds[k])
                if k != dissolved and q < best:
                    best, changed[i] = q, k
    centre = _draw(rng, instance.weight)
    for i in range(len(changed)):
        own = squared_difference(instance.mean[i], seeds[changed[i]])
        if instance.fixed[i] < 0 and squared_difference(instance.mean[i], instance.mean[centre]) < own:
            changed[i] = dissolved
    for a in range(instance.mean.shape[1]):
        seeds[dissolved, a] = instance.mean[centre, a]
    return changed, seeds


@kernel
def _means(instance: Instance, labels: IntArray) -> FloatArray:
    K, D = instance.n_clusters, instance.mean.shape[1]
    means, weight = np.zeros((K, D)), np.zeros(K)
    for i in range(len(labels)):
        weight[labels[i]] += instance.weight[i]
        for a in range(D):
            means[labels[i], a] += instance.weight[i] * instance.mean[i, a]
    for k in range(K):
        if weight[k] > 0.0:
            for a in range(D):
                means[k, a] /= weight[k]
    return means


@kernel
def _lower_distances(instance: Instance, seed: FloatArray, distance: FloatArray) -> None:
    for i in range(len(distance)):
        distance[i] = min(distance[i], squared_difference(instance.mean[i], seed))


@kernel
def squared_difference(x: FloatArray, y: FloatArray) -> float:
    q = 0.0
    for a in range(len(x)):
        q += (x[a] - y[a]) ** 2
    return q


@kernel
def _draw(rng: np.random.Generator, chance: FloatArray) -> int:
    """Index drawn with probability proportional to `chance`; uniformly if all are zero."""
    total = 0.0
    for c in chance:
        total += c
    if total <= 0.0:
        return int(rng.random() * len(chance))
    left = rng.random() * total
    last = 0
    for i in range(len(chance)):
        if chance[i] > 0.0:
            last = i
            left -= chance[i]
            if left < 0.0:
                break
    return last
