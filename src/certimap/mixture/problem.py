"""A constrained mixture problem: items, prior and constraints as flat arrays, and what a labelling is worth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap._numeric.links import chain, closure, compressed_links
from certimap.mixture.clusters import IntArray, Items, PartitionObjective, partition_objective
from certimap.mixture.prior import FloatArray, NormalWishartPrior, checked_sample_weight

Pairs = Iterable[tuple[int, int]]
WeightedPairs = Iterable[tuple[int, int, float]]


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """Maximise F(labels) minus the weights of violated soft links, over labellings that satisfy the constraints.

    Attributes:
        prior: prior of the mixture.
        data, sample_weight: the points, shape (N, D), and how often each counts, shape (N,).
        items: what is assigned; points tied by must-links form one item.
        n_clusters: K; clusters may stay empty unless `min_size` forbids it.
        point_item: item of every point, shape (N,).
        points: number of points of every item, shape (I,); cluster sizes count these, not sample weights.
        conflict_start, conflict_items: cannot-links as compressed rows, every link in both directions:
            item i may not share a cluster with ``conflict_items[conflict_start[i]:conflict_start[i + 1]]``.
        min_size, max_size: bounds on the number of points of every cluster.
        fixed: cluster an item must be in, or -1, shape (I,).
        soft_pairs: pairs of different items, shape (P, 2).
        soft_weights: what violating each pair costs, shape (P,).
        soft_together: whether the pair wants one cluster (soft must-link) or two (soft cannot-link), shape (P,).
        soft_constant: cost of the soft cannot-links inside one item, which no labelling avoids.
    """

    prior: NormalWishartPrior
    data: FloatArray
    sample_weight: FloatArray
    items: Items
    n_clusters: int
    point_item: IntArray
    points: IntArray
    conflict_start: IntArray
    conflict_items: IntArray
    min_size: int
    max_size: int
    fixed: IntArray
    soft_pairs: IntArray
    soft_weights: FloatArray
    soft_together: NDArray[np.bool_]
    soft_constant: float

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def from_points(
        cls,
        X: ArrayLike,
        prior: NormalWishartPrior,
        n_clusters: int,
        *,
        sample_weight: ArrayLike | None = None,
        must_link: Pairs = (),
        cannot_link: Pairs = (),
        min_size: int | None = None,
        max_size: int | None = None,
        known_labels: ArrayLike | None = None,
        soft_must_link: WeightedPairs = (),
        soft_cannot_link: WeightedPairs = (),
    ) -> "MixtureProblem":
        """Contract the must-links and carry everything else over from points to items.

        ``known_labels[i]`` is the cluster of point i or -1. Raises ValueError for a wrong argument and for
        constraints that contradict each other pairwise, with the chain of must-links that ties the points.
        """
        data = np.array(X, dtype=np.float64)
        if data.ndim != 2 or data.shape[1] != prior.dimension:
            raise ValueError(f"X must have shape (points, {prior.dimension}) as the prior, got {data.shape}.")
        n_points = len(data)
        if n_clusters < 1:
            raise ValueError(f"n_clusters must be at least 1, got {n_clusters!r}.")
        ties = _checked_pairs("must_link", must_link, n_points)
        apart = _checked_pairs("cannot_link", cannot_link, n_points)
        point_item = closure(ties, n_points)
        for i, j in apart:
            if point_item[i] == point_item[j]:
                raise ValueError(
                    f"cannot_link must not contradict must_link, got the pair ({i}, {j}): the points are "
                    f"tied by the must-links {_chain(ties, n_points, int(i), int(j))}."
                )
        fixed = _fixed_items(known_labels, point_item, n_clusters, ties)
        _check_known_labels_apart(fixed[point_item], apart)
        n_items = int(point_item.max()) + 1
        start, neighbours = compressed_links(point_item[apart], n_items)
        least, most = _checked_sizes(min_size, max_size, n_points, n_clusters)
        pairs, weights, together, constant = _soft_links(soft_must_link, soft_cannot_link, point_item)
        weight = checked_sample_weight(sample_weight, n_points)
        return cls(
            prior=prior,
            data=data,
            sample_weight=weight,
            items=Items.from_points(data - prior.mean, weight, None if n_items == n_points else point_item),
            n_clusters=int(n_clusters),
            point_item=point_item,
            points=np.bincount(point_item).astype(np.int64),
            conflict_start=start,
            conflict_items=neighbours,
            min_size=least,
            max_size=most,
            fixed=fixed,
            soft_pairs=pairs,
            soft_weights=weights,
            soft_together=together,
            soft_constant=constant,
        )

    @cached_property
    def objective(self) -> PartitionObjective:
        """F in closed form."""
        return partition_objective(self.prior, self.items, self.n_clusters)

    def log_map(self, labels: ArrayLike) -> float:
        """Closed-form value of a labelling of the items: F minus the weights of violated soft links."""
        return self.objective.partition_value(labels) - self.soft_penalty(labels)

    def soft_penalty(self, labels: ArrayLike) -> float:
        """Sum of the weights of the violated soft links."""
        assigned = np.asarray(labels)
        together = assigned[self.soft_pairs[:, 0]] == assigned[self.soft_pairs[:, 1]]
        return float(self.soft_weights[together != self.soft_together].sum()) + self.soft_constant

    def violations(self, labels: ArrayLike) -> list[str]:
        """Every hard constraint that a labelling of the items breaks, in words; empty if it is feasible."""
        assigned = np.asarray(labels)
        rows = np.repeat(np.arange(len(self.items)), np.diff(self.conflict_start))
        clash = (assigned[rows] == assigned[self.conflict_items]) & (rows < self.conflict_items)
        found = [
            f"cannot-linked items {i} and {j} share cluster {assigned[i]}"
            for i, j in zip(rows[clash], self.conflict_items[clash], strict=True)
        ]
        found += [
            f"item {i} is in cluster {assigned[i]}, fixed to {self.fixed[i]}"
            for i in np.flatnonzero((self.fixed >= 0) & (self.fixed != assigned))
        ]
        sizes = np.bincount(assigned, weights=self.points, minlength=self.n_clusters).astype(np.int64)
        found += [
            f"cluster {k} has {size} points, allowed {self.min_size}..{self.max_size}"
            for k, size in enumerate(sizes)
            if not self.min_size <= size <= self.max_size
        ]
        return found

    def point_labels(self, labels: ArrayLike) -> IntArray:
        """Labels of the points from labels of the items."""
        return np.asarray(labels, dtype=np.int64)[self.point_item]

    def item_labels(self, point_labels: ArrayLike) -> IntArray:
        """Labels of the items from labels of the points; ValueError if a must-link is broken."""
        given = np.asarray(point_labels, dtype=np.int64)
        labels = np.zeros(len(self.items), dtype=np.int64)
        labels[self.point_item] = given
        broken = np.flatnonzero(labels[self.point_item] != given)
        if len(broken):
            raise ValueError(f"labels must agree on tied points, got {given[broken[0]]} for point {broken[0]}.")
        return labels


def _checked_pairs(name: str, pairs: Pairs, n_points: int) -> IntArray:
    array = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    for i, j in array[((array < 0) | (array >= n_points)).any(axis=1) | (array[:, 0] == array[:, 1])][:1]:
        raise ValueError(f"{name} must hold pairs of different points in 0..{n_points - 1}, got ({i}, {j}).")
    return array


def _chain(ties: IntArray, n_points: int, start: int, end: int) -> str:
    return " - ".join(str(i) for i in chain(ties, n_points, start, end))


def _checked_sizes(least: int | None, most: int | None, n_points: int, n_clusters: int) -> tuple[int, int]:
    low, high = 0 if least is None else int(least), n_points if most is None else int(most)
    if low < 0 or low * n_clusters > n_points:
        raise ValueError(
            f"min_size must be in 0..{n_points // n_clusters}, got {least!r}: "
            f"{n_clusters} clusters share {n_points} points."
        )
    if high < low or high * n_clusters < n_points:
        raise ValueError(
            f"max_size must be at least {max(low, -(-n_points // n_clusters))}, got {most!r}: "
            f"{n_clusters} clusters hold {n_points} points, at least {low} each."
        )
    return low, high


def _fixed_items(known: ArrayLike | None, point_item: IntArray, n_clusters: int, ties: IntArray) -> IntArray:
    fixed = np.full(int(point_item.max()) + 1, -1, dtype=np.int64)
    if known is None:
        return fixed
    labels = np.asarray(known, dtype=np.int64)
    if labels.shape != point_item.shape:
        raise ValueError(f"known_labels must have shape ({len(point_item)},), got {labels.shape}.")
    if ((labels < -1) | (labels >= n_clusters)).any():
        raise ValueError(
            f"known_labels must be -1 (unknown) or a cluster in 0..{n_clusters - 1}, "
            f"got {labels.min()}..{labels.max()}."
        )
    source: dict[int, int] = {}
    for i in np.flatnonzero(labels >= 0):
        first = source.setdefault(int(point_item[i]), int(i))
        if labels[first] != labels[i]:
            raise ValueError(
                f"known_labels must not contradict must_link, got {labels[first]} for point {first} and {labels[i]} "
                f"for point {i}, tied by the must-links {_chain(ties, len(point_item), first, int(i))}."
            )
        fixed[point_item[i]] = labels[i]
    return fixed


def _check_known_labels_apart(known: IntArray, apart: IntArray) -> None:
    for i, j in apart:
        if known[i] == known[j] >= 0:
            raise ValueError(
                f"known_labels must not contradict cannot_link, got cluster {known[i]} for both points of the "
                f"pair ({i}, {j}), themselves or through must-links."
            )


def _soft_links(
    together: WeightedPairs, apart: WeightedPairs, point_item: IntArray
) -> tuple[IntArray, FloatArray, NDArray[np.bool_], float]:
    """Soft links between items; a link inside one item is satisfied or violated whatever the labels are."""
    pairs: list[Sequence[int]] = []
    weights: list[float] = []
    wants: list[bool] = []
    constant = 0.0
    for name, links, wanted in (("soft_must_link", together, True), ("soft_cannot_link", apart, False)):
        given = list(links)
        ends = _checked_pairs(name, [(i, j) for i, j, _ in given], len(point_item))
        for (i, j), (_, _, weight) in zip(point_item[ends], given, strict=True):
            if not (np.isfinite(weight) and weight >= 0.0):
                raise ValueError(
                    f"{name} must have finite weights >= 0, got {weight!r}: a weight is what violating the link costs."
                )
            if i != j:
                pairs.append((i, j))
                weights.append(float(weight))
                wants.append(wanted)
            elif not wanted:
                constant += float(weight)
    return (
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        np.array(weights, dtype=np.float64),
        np.array(wants, dtype=np.bool_),
        constant,
    )
