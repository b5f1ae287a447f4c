"""What a report on a clustering is about, and the tables in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certimap.mixture.clusters import IntArray
from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.prior import FloatArray, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.report.text import plural
from certimap.results import ConstraintCheck, Result


@dataclass(frozen=True, eq=False)
class ClusteringReport:
    """A solved mixture problem with its data.

    Attributes:
        title: heading of the report.
        data: the points that were clustered, shape (N, D).
        feature_names: names of the D coordinates.
        prior, constraints: as solved.
        result: the answer and what is proved about it.
        tolerance: relative gap that counts as optimal.
        seed: of the local search.
        preparation: what was done to the data before.
        certificate_path: where the proof was saved, if it was.
        agreement: comparisons with labels that the solve did not see, by name.
    """

    title: str
    data: FloatArray
    feature_names: tuple[str, ...]
    prior: NormalWishartPrior
    constraints: ClusterConstraints
    result: Result
    tolerance: float
    seed: int
    preparation: str = "as given"
    certificate_path: str | None = None
    agreement: dict[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> IntArray:
        """Cluster of every point."""
        return np.asarray(self._answer["z"], dtype=np.int64)

    @property
    def means(self) -> FloatArray:
        """mu, shape (K, D)."""
        return np.asarray(self._answer["mu"], dtype=np.float64)

    @property
    def covariances(self) -> FloatArray:
        """The inverse precisions, shape (K, D, D)."""
        return np.asarray(np.linalg.inv(self._answer["Lambda"]), dtype=np.float64)

    @property
    def n_clusters(self) -> int:
        """K, empty clusters included."""
        return len(self.means)

    def clusters(self) -> list[ClusterRow]:
        """Size, weight and mean of every cluster."""
        sizes = np.bincount(self.labels, minlength=self.n_clusters)
        return [
            ClusterRow(k, int(size), float(weight), tuple(float(m) for m in mean))
            for k, (size, weight, mean) in enumerate(zip(sizes, self._answer["pi"], self.means, strict=True))
        ]

    @property
    def _answer(self) -> Mapping[str, Any]:
        if self.result.assignment is None:
            raise ValueError(f"a clustering report needs a clustering, got the status {self.result.status.name}.")
        return self.result.assignment


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


def constraint_summary(checks: Sequence[ConstraintCheck]) -> str:
    """How many constraints hold, and what the violated soft ones cost."""
    hard = Counter(check.satisfied for check in checks if check.hard)
    soft = Counter(check.satisfied for check in checks if not check.hard)
    cost = sum(check.cost for check in checks)
    parts = [f"{hard[True]} of {plural(hard.total(), 'hard constraint')} satisfied"] if hard else []
    parts += [f"{soft[True]} of {plural(soft.total(), 'soft constraint')} satisfied, cost {cost:g}"] if soft else []
    return "; ".join(parts)
