"""What a report on a clustering is about, and the tables in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.prior import FloatArray, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.report.answer import AnswerReport
from certimap.report.text import number, plural
from certimap.results import ConstraintCheck, Ranking


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


@dataclass(frozen=True)
class RankingRow:
    """One line of the ranking; `moved` points have another label than in the best clustering."""

    rank: int
    log_map: float
    difference: float
    odds: float  # posterior density of labels and parameters, relative to the best
    moved: int


def ranking_rows(ranking: Ranking) -> list[RankingRow]:
    """The best clusterings, each compared with the first."""
    return [
        RankingRow(
            place + 1,
            entry.log_map,
            entry.difference,
            math.exp(-entry.difference),
            int((entry.labels != ranking[0].labels).sum()),
        )
        for place, entry in enumerate(ranking)
    ]


def ranking_summary(ranking: Ranking) -> str:
    """What the ranking proves, in a sentence."""
    if not len(ranking):
        return f"No clustering could be ranked; none has a log-posterior above {number(ranking.others)}."
    sentence = f"Every other clustering has a log-posterior of at most {ranking.others:.10g}."
    if not ranking.complete:
        sentence += f" {plural(ranking.wanted, 'clustering')} were asked for; the proof ends here."
    return sentence


def describe_mixture(problem: MixtureProblem, constraints: ClusterConstraints) -> str:
    """The problem in one line, for the head of the log table."""
    size = f"N={constraints.n_points} D={problem.prior.dimension} K={problem.n_clusters}"
    parts = [f"mixture  {size}  {problem.prior.covariance_type} covariance", constraints.summary()]
    return " | ".join(part for part in parts if part)
