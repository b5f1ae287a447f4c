"""Constraints on a clustering as users give them: checked, handed to the problem, and compared with an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.results import ConstraintCheck

Link = Sequence[float]  # (i, j) or (i, j, weight)
HardLink = tuple[int, int]
SoftLink = tuple[int, int, float]


@dataclass(frozen=True, eq=False)
class ClusterConstraints:
    """Must-links, cannot-links, sizes and known labels of N points.

    Attributes:
        n_points: N.
        must_link, cannot_link: pairs of points that every answer respects.
        soft_must_link, soft_cannot_link: pairs with the log-density that violating them costs.
        min_size, max_size: bounds on the number of points of every cluster, or None.
        known_labels: cluster of every point or -1, shape (N,).
    """

    n_points: int
    must_link: tuple[HardLink, ...]
    cannot_link: tuple[HardLink, ...]
    soft_must_link: tuple[SoftLink, ...]
    soft_cannot_link: tuple[SoftLink, ...]
    min_size: int | None
    max_size: int | None
    known_labels: IntArray

    @classmethod
    def from_arguments(
        cls,
        n_points: int,
        n_clusters: int,
        *,
        y: ArrayLike | None = None,
        must_link: Iterable[Link] | None = None,
        cannot_link: Iterable[Link] | None = None,
        min_cluster_size: int | None = None,
        max_cluster_size: int | None = None,
    ) -> ClusterConstraints:
        """Check every argument on its own; contradictions between them are found by `problem`."""
        together, softly_together = _split_links("must_link", must_link, n_points)
        apart, softly_apart = _split_links("cannot_link", cannot_link, n_points)
        least = _checked_size("min_cluster_size", min_cluster_size)
        most = _checked_size("max_cluster_size", max_cluster_size)
        if least is not None and least * n_clusters > n_points:
            raise ValueError(
                f"min_cluster_size must be at most {n_points // n_clusters}, got {least}: "
                f"{n_clusters} clusters share {n_points} points."
            )
        if most is not None and (most * n_clusters < n_points or most < (least or 0)):
            raise ValueError(
                f"max_cluster_size must be at least {max(least or 0, -(-n_points // n_clusters))}, got {most}: "
                f"{n_clusters} clusters hold {n_points} points, at least {least or 0} each."
            )
        return cls(
            n_points=n_points,
            must_link=together,
            cannot_link=apart,
            soft_must_link=softly_together,
            soft_cannot_link=softly_apart,
            min_size=least,
            max_size=most,
            known_labels=_checked_labels(y, n_points, n_clusters),
        )

    def problem(
        self, X: ArrayLike, prior: NormalWishartPrior, n_clusters: int, sample_weight: ArrayLike | None = None
    ) -> MixtureProblem:
        """The mixture problem under these constraints; ValueError names constraints that contradict each other."""
        return MixtureProblem.from_points(
            X,
            prior,
            n_clusters,
            sample_weight=sample_weight,
            must_link=self.must_link,
            cannot_link=self.cannot_link,
            min_size=self.min_size,
            max_size=self.max_size,
            known_labels=self.known_labels,
            soft_must_link=self.soft_must_link,
            soft_cannot_link=self.soft_cannot_link,
        )

    def checks(self, labels: ArrayLike, n_clusters: int) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with labels of the points."""
        z = np.asarray(labels)
        found = [ConstraintCheck("must-link", f"points {i}, {j}", True, bool(z[i] == z[j])) for i, j in self.must_link]
        found += [
            ConstraintCheck("cannot-link", f"points {i}, {j}", True, bool(z[i] != z[j])) for i, j in self.cannot_link
        ]
        sizes = np.bincount(z, minlength=n_clusters)
        if self.min_size is not None:
            found.append(ConstraintCheck("minimum size", f"{self.min_size}", True, bool(sizes.min() >= self.min_size)))
        if self.max_size is not None:
            found.append(ConstraintCheck("maximum size", f"{self.max_size}", True, bool(sizes.max() <= self.max_size)))
        known = np.flatnonzero(self.known_labels >= 0)
        if len(known):
            kept = bool((z[known] == self.known_labels[known]).all())
            found.append(ConstraintCheck("known labels", f"{len(known)} points", True, kept))
        for kind, links, together in (
            ("soft must-link", self.soft_must_link, True),
            ("soft cannot-link", self.soft_cannot_link, False),
        ):
            for i, j, weight in links:
                kept = bool((z[i] == z[j]) == together)
                subject = f"points {i}, {j}, weight {weight:g}"
                found.append(ConstraintCheck(kind, subject, False, kept, 0.0 if kept else weight))
        return tuple(found)

    def summary(self) -> str:
        """How many constraints of each kind; empty without constraints."""
        counts = (
            (len(self.must_link), "must-link"),
            (len(self.cannot_link), "cannot-link"),
            (len(self.soft_must_link), "soft must-link"),
            (len(self.soft_cannot_link), "soft cannot-link"),
            (int((self.known_labels >= 0).sum()), "known"),
        )
        parts = [f"{count} {noun}" for count, noun in counts if count]
        if self.min_size is not None or self.max_size is not None:
            most = self.n_points if self.max_size is None else self.max_size
            parts.append(f"sizes {self.min_size or 0}..{most}")
        return ", ".join(parts)


def _split_links(
    name: str, links: Iterable[Link] | None, n_points: int
) -> tuple[tuple[HardLink, ...], tuple[SoftLink, ...]]:
    """Pairs, and pairs with a weight; they may be mixed."""
    hard: list[HardLink] = []
    soft: list[SoftLink] = []
    for link in np.asarray(links) if hasattr(links, "__array__") else links or ():
        entries = list(link) if isinstance(link, Iterable) else [link]
        if len(entries) not in (2, 3):
            raise ValueError(f"{name} must hold pairs (i, j) or (i, j, weight), got {link!r}.")
        i, j = (_point(name, entry, n_points, link) for entry in entries[:2])
        if i == j:
            raise ValueError(f"{name} must hold pairs of different points, got {link!r}.")
        if len(entries) == 2:
            hard.append((i, j))
        elif np.isfinite(entries[2]) and entries[2] >= 0.0:
            soft.append((i, j, float(entries[2])))
        else:
            raise ValueError(f"{name} must have finite weights >= 0, got {link!r}; a hard link has no third entry.")
    return tuple(hard), tuple(soft)


def _point(name: str, entry: float, n_points: int, link: Link) -> int:
    # A weight in the same array makes the indices floats.
    if isinstance(entry, bool | str | bytes) or entry != int(entry) or not 0 <= entry < n_points:
        raise ValueError(f"{name} must name points by their row, 0..{n_points - 1}, got {link!r}.")
    return int(entry)


def _checked_size(name: str, size: int | None) -> int | None:
    if size is None:
        return None
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 0:
        raise ValueError(f"{name} must be None or an integer >= 0, got {size!r}.")
    return int(size)


def _checked_labels(y: ArrayLike | None, n_points: int, n_clusters: int) -> IntArray:
    if y is None:
        return np.full(n_points, -1, dtype=np.int64)
    labels = np.asarray(y)
    if labels.shape != (n_points,):
        raise ValueError(f"y must have one entry per point, shape ({n_points},), got {labels.shape}.")
    allowed = f"y must hold known clusters 0..{n_clusters - 1}, -1 where unknown"
    if labels.dtype.kind not in "iu" and not (labels.dtype.kind == "f" and (labels == np.round(labels)).all()):
        raise ValueError(f"{allowed}. Unknown label type: {labels.dtype}.")
    if labels.min() < -1 or labels.max() >= n_clusters:
        raise ValueError(f"{allowed}, got {labels.min():g}..{labels.max():g}.")
    return labels.astype(np.int64)
