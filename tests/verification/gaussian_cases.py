"""Small pricing claims about Gaussian clusters, with every admitted set and its value by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certimap import Model
from certimap.mixture.factor import gaussian_clusters
from certimap.mixture.prior import CovarianceType, NormalWishartPrior
from certimap.verification.gaussian_pricing import GaussianPricing
from certimap.verification.pricing import PriceClaim
from certimap.verification.proof import Effort
from certimap.verification.subsets import GroupRules

WHOLE = Effort(full=True, seed=0)
KINDS: tuple[CovarianceType, ...] = ("full", "diag", "spherical", "known")


def points(rng: np.random.Generator, count: int, dimension: int) -> np.ndarray:
    X = rng.normal(size=(count, dimension)) @ rng.normal(size=(dimension, dimension))
    X[: count // 2] += 2.0 * rng.normal(size=dimension)
    return X


def rotation_of(rng: np.random.Generator, kind: str, dimension: int) -> np.ndarray:
    """A random rotation where one may turn the axes."""
    turned = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    return np.eye(dimension) if kind == "diag" else turned


def prior_of(X: np.ndarray, kind: CovarianceType = "full", **changes: Any) -> NormalWishartPrior:
    """The default one; a known covariance is a third of that of the data."""
    if kind == "known":
        changes = {k: v for k, v in changes.items() if k != "degrees_of_freedom_prior"}
        changes["covariance_prior"] = np.atleast_2d(np.cov(X.T)) / 3.0
    return NormalWishartPrior.from_data(X, kind, **changes)


def record_of(sizes: np.ndarray, rotation: np.ndarray) -> dict[str, Any]:
    """A recorded tree without cuts."""
    count = len(sizes)
    return {
        "rotation": rotation,
        "sizes": sizes,
        "parent": np.full(count, -1),
        "side": np.zeros(count, dtype=np.int64),
        "coordinate": np.full(count, -1),
        "cut": np.zeros(count),
        "nodes": np.ones(count, dtype=np.int64),
    }


def cut_record(
    record: dict[str, Any], rng: np.random.Generator, coordinates: Sequence[int], cuts: int
) -> dict[str, Any]:
    """The recorded tree with that many more cuts, each of some leaf at a random place."""
    tree = {key: list(record[key]) for key in ("parent", "side", "coordinate", "cut", "nodes")}
    for _ in range(cuts):
        leaf = int(rng.choice(np.flatnonzero(np.array(tree["coordinate"]) < 0)))
        coordinate = int(rng.choice(coordinates))
        tree["coordinate"][leaf] = coordinate
        tree["cut"][leaf] = float(rng.uniform(0.0, 9.0) if coordinate == 0 else rng.normal())
        for side in (0, 1):
            for key, entry in (("parent", leaf), ("side", side), ("coordinate", -1), ("cut", 0.0), ("nodes", 1)):
                tree[key].append(entry)
    return {**record, **{key: np.array(values) for key, values in tree.items()}}


@dataclass
class Case:
    """One pricing problem; `reduced` of every admitted nonempty set, `family` the largest value the proof can show."""

    pricing: GaussianPricing
    rules: GroupRules
    prices: np.ndarray
    record: dict[str, Any]
    reduced: dict[frozenset[int], float]
    family: float
    empty: float

    @staticmethod
    def of(
        X: np.ndarray,
        prices: np.ndarray,
        *,
        prior: tuple[float, float, float] = (1.0, 1.0, 2.0),
        groups: list[list[int]] | None = None,
        apart: tuple[tuple[int, int], ...] = (),
        low: int = 0,
        high: int | None = None,
        sample_weight: np.ndarray | None = None,
        rewards: tuple[tuple[int, int, float], ...] = (),
        rotation: np.ndarray | None = None,
        kind: CovarianceType = "full",
        given: NormalWishartPrior | None = None,
    ) -> Case:
        count, dimension = X.shape
        a0, b0, v = prior
        made = given or prior_of(
            X,
            kind,
            weight_concentration_prior=a0,
            mean_precision_prior=b0,
            degrees_of_freedom_prior=dimension + v,
            sample_weight=sample_weight,
        )
        model = Model()
        factor = gaussian_clusters(model.categorical("z", 3, shape=count), X, made, sample_weight=sample_weight)
        members = tuple(tuple(g) for g in (groups or [[i] for i in range(count)]))
        rules = GroupRules(members, apart, low, count if high is None else high)
        weight = np.ones(count) if sample_weight is None else sample_weight
        totals = np.array([weight[list(g)].sum() for g in members])
        ordered = np.sort(weight)
        least, most = ordered[: rules.low].sum() * (1.0 - 1e-9), ordered[::-1][: rules.high].sum() * (1.0 + 1e-9)
        whole = bool((weight == np.round(weight)).all())
        smallest, largest = max(least, totals.min()), min(most, weight.sum())
        if whole:
            smallest, largest = math.ceil(smallest), math.floor(largest)
        middle = math.floor(0.5 * (smallest + largest)) if whole else 0.5 * (smallest + largest)
        sizes = np.array([[smallest, middle], [middle + whole, largest]])
        sizes = sizes[sizes[:, 0] <= sizes[:, 1]]
        record = record_of(sizes, np.eye(dimension) if rotation is None else rotation)
        reduced, family = {}, -math.inf
        linear = sum(max(0.0, r) for _, _, r in rewards)
        for chosen in itertools.product((False, True), repeat=len(members)):
            items = frozenset(i for g, x in zip(members, chosen, strict=True) if x for i in g)
            within = sum(r for i, j, r in rewards if i in items and j in items)
            value = factor.cluster_value(np.array(sorted(items), dtype=np.int64)) - float(prices[sorted(items)].sum())
            if not items:
                empty = value
            elif not any(chosen[a] and chosen[b] for a, b in apart):
                if rules.low <= len(items) <= rules.high:
                    reduced[items] = value + within
                if least <= weight[sorted(items)].sum() <= most:
                    family = max(family, value + linear)
        if low <= 0:
            family = max(family, empty)
        return Case(GaussianPricing(factor, rewards, WHOLE, 1), rules, prices, record, reduced, family, empty)

    @property
    def best(self) -> float:
        """The largest reduced value of an admitted set."""
        values = list(self.reduced.values())
        return max([*values, self.empty] if self.rules.low <= 0 else values)

    def claim(self, price: float, **changed: Any) -> PriceClaim:
        multipliers = [Fraction(float(v)) for v in self.prices]
        return PriceClaim(multipliers, self.rules, Fraction(price), {**self.record, **changed})

    def above(self, threshold: float) -> set[frozenset[int]]:
        return {items for items, value in self.reduced.items() if value > threshold}
