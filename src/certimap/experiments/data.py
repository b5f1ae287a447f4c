"""The paper's three data sets, prepared as its text says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA

from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem

FloatArray = NDArray[np.float64]
BRCA_FEATURES = ("worst area", "worst smoothness", "mean texture")


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points, and labels that no method sees: -1 where one is unknown, None where all are."""

    name: str
    points: FloatArray
    labels: NDArray[np.int64] | None
    n_clusters: int
    feature_names: tuple[str, ...]
    preparation: str

    def problem(self, must_links: tuple[tuple[int, int], ...] = ()) -> MixtureProblem:
        """The mixture with certimap's default prior."""
        prior = NormalWishartPrior.from_data(self.points)
        return MixtureProblem.from_points(self.points, prior, self.n_clusters, must_link=must_links)

    def must_links(self, n: int, seed: int) -> tuple[tuple[int, int], ...]:
        """The first `n` of a fixed sequence of pairs with equal labels: fewer links are always among more."""
        if self.labels is None:
            raise ValueError(f"must-links are drawn among points of equal labels, {self.name} has none.")
        available = sum(count * (count - 1) // 2 for count in np.unique(self.labels, return_counts=True)[1].tolist())
        if n > available:
            raise ValueError(f"n must be at most {available}, got {n}: {self.name} has no more pairs of equal labels.")
        rng = np.random.default_rng(seed)
        pairs: list[tuple[int, int]] = []
        while len(pairs) < n:
            i, j = sorted(int(point) for point in rng.choice(len(self.points), 2, replace=False))
            if self.labels[i] == self.labels[j] and (i, j) not in pairs:
                pairs.append((i, j))
        return tuple(pairs)


def iris(components: int = 3) -> DataSet:
    """150 points, the first three principal components."""
    bunch = load_iris()
    points, names, share = _components(np.asarray(bunch.data, dtype=np.float64), components)
    preparation = f"centred, first {components} principal components ({share:.1f} % of the variance)"
    name = "iris" if components == 3 else f"iris, {components} components"
    return DataSet(name, points, np.asarray(bunch.target), 3, names, preparation)


def wine() -> DataSet:
    """178 points, standardised, the first six principal components."""
    bunch = load_wine()
    points, names, share = _components(_standardised(np.asarray(bunch.data, dtype=np.float64)), 6)
    preparation = f"standardised, first 6 principal components ({share:.1f} % of the variance)"
    return DataSet("wine", points, np.asarray(bunch.target), 3, names, preparation)


def brca() -> DataSet:
    """569 points, three of the thirty features, standardised."""
    bunch = load_breast_cancer()
    columns = [list(bunch.feature_names).index(name) for name in BRCA_FEATURES]
    points = _standardised(np.asarray(bunch.data, dtype=np.float64)[:, columns])
    preparation = f"{', '.join(BRCA_FEATURES)}, standardised"
    return DataSet("brca", points, np.asarray(bunch.target), 2, BRCA_FEATURES, preparation)


DATA_SETS: dict[str, Callable[[], DataSet]] = {"iris": iris, "wine": wine, "brca": brca}


def _standardised(points: FloatArray) -> FloatArray:
    return np.asarray((points - points.mean(axis=0)) / points.std(axis=0), dtype=np.float64)


def _components(points: FloatArray, n: int) -> tuple[FloatArray, tuple[str, ...], float]:
    reduction = PCA(n, svd_solver="full")
    reduced = np.ascontiguousarray(reduction.fit_transform(points), dtype=np.float64)
    return reduced, tuple(f"PC {j + 1}" for j in range(n)), 100.0 * float(reduction.explained_variance_ratio_.sum())
