"""The Gaussian mixture as a model: a Partition factor with the value c(S) of `clusters`, and what constrains it.

    m = Model()
    z = m.categorical("z", K, shape=len(X))
    m.add(gaussian_clusters(z, X, NormalWishartPrior.from_data(X)))
    m.constrain(must_link(z[0], z[1]))

The prior's covariance type says which precisions Lambda a cluster may have (formulas in `clusters`):

- ``full``: any; c(S) looks at the determinant of M_S;
- ``diag``: diagonal ones, a normal-gamma for every feature; c(S) looks at the diagonal of M_S;
- ``spherical``: multiples of the identity; c(S) looks at the trace of M_S;
- ``known``: the inverse of the prior's covariance, in every cluster; nu0 plays no part.

One precision that is shared but unknown (``tied``) makes no sum over clusters, so there is no such factor.

A certificate of a clustering refers to such a model: `mixture_model` builds the one that belongs to a problem.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.mixture.clusters import Items, SeparableObjective, partition_objective
from certimap.mixture.prior import COVARIANCE_TYPES, FloatArray, NormalWishartPrior, checked_sample_weight
from certimap.mixture.problem import MixtureProblem
from certimap.model.constraints import at_least, at_most, cannot_link, fix, must_link
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable
from certimap.model.model import Model
from certimap.model.partition import Partition, partition_items
from certimap.model.soft import soft


@dataclass(eq=False)
class GaussianClusters(Partition):
    """c(S) of Gaussian clusters, parameters maximised out; see `certimap.mixture.clusters`."""

    kind: ClassVar[str] = "gaussian_clusters"
    items: tuple[Variable, ...]
    data: FloatArray
    prior: NormalWishartPrior
    sample_weight: FloatArray
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)
    objective: SeparableObjective = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for z in self.items for a in z.indicators())
        points = Items.from_points(self.data - self.prior.mean, self.sample_weight)
        objective = partition_objective(self.prior, points, self.n_clusters)
        assert isinstance(objective, SeparableObjective)
        self.objective = objective

    @property
    def signature(self) -> Hashable:
        return (*self.data.shape, self.n_clusters, self.prior.covariance_type)

    def arrays(self) -> dict[str, NDArray[Any]]:
        prior = self.prior
        return {
            "covariance_type": np.array(COVARIANCE_TYPES.index(prior.covariance_type)),
            "data": self.data,
            "sample_weight": self.sample_weight,
            "weight_concentration": np.array(prior.weight_concentration),
            "mean_precision": np.array(prior.mean_precision),
            "mean": prior.mean,
            "degrees_of_freedom": np.array(prior.degrees_of_freedom),
            "covariance": prior.covariance,
        }

    def cluster_value(self, members: NDArray[np.int64]) -> float:
        return self.objective.value(members)


def gaussian_clusters(
    items: Any, X: ArrayLike, prior: NormalWishartPrior, *, sample_weight: ArrayLike | None = None, name: str = ""
) -> GaussianClusters:
    """Row i of X joins cluster z_i of a Gaussian mixture with this prior, of any covariance type but ``tied``."""
    variables = partition_items(items, "gaussian_clusters")
    data = np.array(X, dtype=np.float64)
    if data.shape != (len(variables), prior.dimension):
        raise ModelError(
            f"gaussian_clusters: X has shape {data.shape}, the {len(variables)} items and the prior need "
            f"({len(variables)}, {prior.dimension})"
        )
    if not np.isfinite(data).all():
        raise ModelError(f"gaussian_clusters: X must be finite, got {data[~np.isfinite(data)][0]!r}")
    if prior.covariance_type == "tied":
        raise ModelError(
            "gaussian_clusters: the prior must be of type 'full', 'diag', 'spherical' or 'known', got 'tied': with one "
            "precision for all clusters the value is no sum over clusters"
        )
    try:
        weight = checked_sample_weight(sample_weight, len(data))
    except ValueError as error:
        raise ModelError(f"gaussian_clusters: {error}") from None
    if (weight == 0.0).any():
        raise ModelError("gaussian_clusters: every item needs a positive weight; leave out what counts for nothing")
    data.flags.writeable = False
    weight.flags.writeable = False
    return GaussianClusters(variables, data, prior, weight, name)


def mixture_model(problem: MixtureProblem) -> Model:
    """The model of a mixture problem, over the labels "z" of its points; equal problems give equal fingerprints."""
    model = Model()
    z = model.categorical("z", problem.n_clusters, shape=len(problem.data))
    model.add(gaussian_clusters(z, problem.data, problem.prior, sample_weight=problem.sample_weight))
    first = np.unique(problem.point_item, return_index=True)[1]
    for i, item in enumerate(problem.point_item.tolist()):
        if i != first[item]:
            model.constrain(must_link(z[first[item]], z[i]))
    rows = np.repeat(np.arange(len(problem.items)), np.diff(problem.conflict_start))
    for i, j in zip(rows.tolist(), problem.conflict_items.tolist(), strict=True):
        if i < j:
            model.constrain(cannot_link(z[first[i]], z[first[j]]))
    for item in np.flatnonzero(problem.fixed >= 0):
        model.constrain(fix(z[first[item]], int(problem.fixed[item])))
    for k in range(problem.n_clusters):
        if problem.min_size > 0:
            model.constrain(at_least(problem.min_size, z, value=k))
        if problem.max_size < len(problem.data):
            model.constrain(at_most(problem.max_size, z, value=k))
    for (i, j), weight, together in zip(problem.soft_pairs, problem.soft_weights, problem.soft_together, strict=True):
        link = must_link if together else cannot_link
        model.add(soft(link(z[first[i]], z[first[j]]), weight=float(weight)))
    if problem.soft_constant:
        model.add(LinearExpression({}, -problem.soft_constant))
    return model
