"""What a report on a clustering is about, and the tables in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.prior import FloatArray, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.report.answer import AnswerReport
from certimap.results import ConstraintCheck


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusteringReport(AnswerReport):
    """A solved mixture problem with its data.

    Attributes:
        data: the points that were clustered, shape (N, D).
        feature_names: names of the D coordinates.
        prior, constraints: as solved.
    """

    data: FloatArray
    feature_names: tuple[str, ...]
    prior: NormalWishartPrior
    constraints: ClusterConstraints

    @property
    def means(self) -> FloatArray:
        """mu, shape (K, D)."""
        return np.asarray(self.answer["mu"], dtype=np.float64)

    @property
    def covariances(self) -> FloatArray:
        """The inverse precisions, shape (K, D, D)."""
        return np.asarray(np.linalg.inv(self.answer["Lambda"]), dtype=np.float64)

    @property
    def n_clusters(self) -> int:
        """K, empty clusters included."""
        return len(self.means)

    def clusters(self) -> list[ClusterRow]:
        """Size, weight and mean of every cluster."""
        sizes = np.bincount(self.labels, minlength=self.n_clusters)
        return [
            ClusterRow(k, int(size), float(weight), tuple(float(m) for m in mean))
            for k, (size, weight, mean) in enumerate(zip(sizes, self.answer["pi"], self.means, strict=True))
        ]

    def checks(self) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with the answer."""
        return self.constraints.checks(self.labels, self.n_clusters)


@dataclass(frozen=True)
class ClusterRow:
    """One line of the cluster table."""

    cluster: int
    size: int
    weight: float
    mean: tuple[float, ...]


def describe_mixture(problem: MixtureProblem, constraints: ClusterConstraints) -> str:
    """The problem in one line, for the head of the log table."""
    size = f"N={constraints.n_points} D={problem.prior.dimension} K={problem.n_clusters}"
    parts = [f"mixture  {size}  {problem.prior.covariance_type} covariance", constraints.summary()]
    return " | ".join(part for part in parts if part)
