"""Partition factors: the sum over exchangeable clusters of what each cluster is worth.

    theta(z) = sum_{k=1..K} c({i : z_i = k}),

over N categorical variables z_i with K states each. The value does not depend on which cluster is called k, and every
cluster counts, also the empty ones with c(empty).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.model.checks import positive
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, Variable, as_variables
from certimap.model.factors import Factor


class Partition(Factor):
    """A subclass holds the items' data, sets `kind` and defines `cluster_value`."""

    items: tuple[Variable, ...]

    @property
    def n_clusters(self) -> int:
        return len(self.items[0].states)

    @property
    def signature(self) -> Hashable:
        return (len(self.items), self.n_clusters)

    @abstractmethod
    def cluster_value(self, members: NDArray[np.int64]) -> float:
        """c(S) of the cluster with these items (positions in `items`, ascending; none for the empty cluster)."""

    def value(self, y: NDArray[np.float64]) -> float:
        labels = y.reshape(len(self.items), self.n_clusters).argmax(axis=1)
        return math.fsum(self.cluster_value(np.flatnonzero(labels == k)) for k in range(self.n_clusters))


@dataclass(eq=False)
class OneDimensionalClusters(Partition):
    """Gaussian clusters on the line with known variance v and free means: c(S) = -sum_S (y_i - mean_S)^2 / (2 v)."""

    kind: ClassVar[str] = "clusters_1d"
    items: tuple[Variable, ...]
    y: NDArray[np.float64]
    variance: float
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for z in self.items for a in z.indicators())

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"y": self.y, "variance": np.array(self.variance)}

    def cluster_value(self, members: NDArray[np.int64]) -> float:
        if len(members) < 2:
            return 0.0
        points = self.y[members]
        deviation = points - points.mean()
        return -float(deviation @ deviation) / (2.0 * self.variance)


def clusters_1d(items: Any, y: ArrayLike, variance: float = 1.0, *, name: str = "") -> OneDimensionalClusters:
    """Clusters of the numbers y: item i joins cluster z_i. Its MAP is exact k-means on the line."""
    variables = partition_items(items, "clusters_1d")
    points = np.array(y, dtype=float)
    if points.shape != (len(variables),):
        raise ModelError(
            f"clusters_1d: y has shape {points.shape}, the {len(variables)} items need ({len(variables)},)"
        )
    if not np.isfinite(points).all():
        raise ModelError(f"clusters_1d: y must be finite, got {points[~np.isfinite(points)][0]!r}")
    positive("clusters_1d: the variance", variance)
    points.flags.writeable = False
    return OneDimensionalClusters(variables, points, float(variance), name)


def partition_items(items: Any, what: str) -> tuple[Variable, ...]:
    """The variables of a partition: different ones, all with the states 0 .. K-1."""
    variables = tuple(as_variables(items))
    if not variables:
        raise ModelError(f"{what}: a partition needs at least one item")
    if len(set(variables)) != len(variables):
        raise ModelError(f"{what}: a variable occurs twice among the items")
    for z in variables:
        if z.states != range(len(variables[0].states)):
            raise ModelError(
                f"{what}: all items need the same clusters 0..K-1, {variables[0].name} is a {variables[0].domain}, "
                f"{z.name} a {z.domain}"
            )
    return variables
