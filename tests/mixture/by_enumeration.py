"""Constrained clusterings small enough to look at every labelling, straight from the definition."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certimap.mixture.clusters import Items, partition_objective
from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem

PRIORS: dict[str, dict[str, float]] = {
    "default": {},
    "weak mean": {"weight_concentration_prior": 2.0, "mean_precision_prior": 0.01},
    "concentrated": {"weight_concentration_prior": 4.5, "mean_precision_prior": 3.0},
    "flat": {"degrees_of_freedom_prior": 0.0},  # that many more than there are features
    "stiff": {"degrees_of_freedom_prior": 9.0, "mean_precision_prior": 0.3},
}


@dataclass(frozen=True)
class Clustering:
    """Points, prior and constraints as a user gives them."""

    X: np.ndarray
    K: int
    prior: Mapping[str, float] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    sample_weight: np.ndarray | None = None
    covariance_type: str = "full"

    def fitted_prior(self) -> NormalWishartPrior:
        changes: dict[str, Any] = dict(self.prior)
        if "degrees_of_freedom_prior" in changes:
            changes["degrees_of_freedom_prior"] += self.X.shape[1]
        if self.covariance_type == "known":
            changes.pop("degrees_of_freedom_prior", None)
            changes["covariance_prior"] = np.atleast_2d(np.cov(self.X.T)) / 3.0
        return NormalWishartPrior.from_data(self.X, self.covariance_type, sample_weight=self.sample_weight, **changes)

    def problem(self) -> MixtureProblem:
        given = ClusterConstraints.from_arguments(len(self.X), self.K, **self.constraints)
        return given.problem(self.X, self.fitted_prior(), self.K, self.sample_weight)

    def labellings(self) -> tuple[np.ndarray, np.ndarray]:
        """Every labelling that satisfies the constraints, and its value; the arguments are read once more."""
        count, given = len(self.X), self.constraints
        labels = np.array(list(itertools.product(range(self.K), repeat=count)))
        allowed, cost = np.ones(len(labels), dtype=bool), np.zeros(len(labels))
        for name, together in (("must_link", True), ("cannot_link", False)):
            for i, j, *weight in given.get(name, ()):
                broken = (labels[:, i] == labels[:, j]) != together
                if weight:
                    cost += weight[0] * broken
                else:
                    allowed &= ~broken
        for i, known in enumerate(given.get("y", ())):
            allowed &= (known < 0) | (labels[:, i] == known)
        sizes = (labels[:, :, None] == np.arange(self.K)).sum(axis=1)
        allowed &= (sizes >= given.get("min_cluster_size", 0)).all(axis=1)
        allowed &= (sizes <= given.get("max_cluster_size", count)).all(axis=1)
        labels, cost = labels[allowed], cost[allowed]
        values = self._subset_values()
        powers = 1 << np.arange(count)
        total = sum((values[(labels == k) @ powers] for k in range(self.K)), np.zeros(len(labels)))
        return labels, total - cost

    def _subset_values(self) -> np.ndarray:
        """c(S) of every set, at the number whose bits are its members."""
        prior, count = self.fitted_prior(), len(self.X)
        items = Items.from_points(self.X - prior.mean, self.sample_weight)
        objective = partition_objective(prior, items, self.K)
        members = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return np.array([objective.value_of_statistics(items.statistics(row.astype(bool))) for row in members])

    def optimum(self) -> float:
        """-inf if no labelling satisfies the constraints."""
        return float(self.labellings()[1].max(initial=-np.inf))


def random_clustering(
    rng: np.random.Generator, kind: str, *, largest: int = 9, covariance_type: str = "full"
) -> Clustering:
    """Points in loose groups with constraints of one kind, or of several ("mixed"); they may contradict each other."""
    K = int(rng.choice([2, 3]))
    count, features = int(rng.integers(6, largest + 1)), int(rng.integers(1, 4))
    centres = 3.0 * rng.normal(size=(K, features))
    X = centres[rng.integers(K, size=count)] + rng.normal(size=(count, features)) @ rng.normal(
        size=(features, features)
    )
    kinds = rng.choice(list(CONSTRAINTS), size=3, replace=False) if kind == "mixed" else [kind]
    given: dict[str, Any] = {}
    weight = None
    for name in kinds:
        if name == "weights":
            weight = rng.uniform(0.3, 3.0, size=count) if rng.random() < 0.5 else rng.integers(1, 4, size=count) * 1.0
        else:
            for key, value in CONSTRAINTS[name](rng, count, K).items():
                given[key] = [*given[key], *value] if key in given else value
    prior = PRIORS[str(rng.choice(list(PRIORS)))]
    return Clustering(X, K, prior, given, weight, covariance_type)


def _pairs(rng: np.random.Generator, count: int, most: int) -> list[tuple[int, int]]:
    drawn = (rng.choice(count, size=2, replace=False).tolist() for _ in range(int(rng.integers(1, most + 1))))
    return [(i, j) for i, j in drawn]


def _soft(rng: np.random.Generator, count: int) -> list[tuple[float, ...]]:
    return [(i, j, float(rng.uniform(0.1, 4.0))) for i, j in _pairs(rng, count, 3)]


def _known(rng: np.random.Generator, count: int, K: int) -> dict[str, Any]:
    return {"y": np.where(rng.random(count) < 0.3, rng.integers(K, size=count), -1)}


CONSTRAINTS: dict[str, Any] = {
    "none": lambda rng, n, K: {},
    "must_link": lambda rng, n, K: {"must_link": _pairs(rng, n, 4)},
    "cannot_link": lambda rng, n, K: {"cannot_link": _pairs(rng, n, 3)},
    "min_size": lambda rng, n, K: {"min_cluster_size": int(rng.integers(1, n // K + 1))},
    "max_size": lambda rng, n, K: {"max_cluster_size": int(rng.integers(-(-n // K), n))},
    "known": _known,
    "soft_must_link": lambda rng, n, K: {"must_link": _soft(rng, n)},
    "soft_cannot_link": lambda rng, n, K: {"cannot_link": _soft(rng, n)},
    "weights": lambda rng, n, K: {},
}
