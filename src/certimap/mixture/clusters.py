"""Value of a cluster and of a partition, the mixture's parameters maximised out in closed form.

With v = nu0-D, n the weight of cluster S, m = n+a0-1, Nt = N+K(a0-1), y centred on m0, mu = sum y/(b0+n) and

    M_S = W0^-1 + sum y y' - (b0+n) mu mu',

the factor terms of cluster k that remain at the optimal pi and mu are

    g(S, Lambda) = m log(m/Nt) + (D/2) log b0 + (nu/2) logdet Lambda - tr(Lambda M_S)/2,      nu = v+n.

Maximising over the precisions of the covariance type:

- ``full``: Lambda = nu M_S^-1, c(S) = m log(m/Nt) + (D/2) log b0 + (D nu/2)(log nu - 1) - (nu/2) logdet M_S.
- ``diag``: logdet and trace split over the features, tau_d = nu/M_dd. Each feature has the full formula in one
  dimension (the same exponent nu/2: a normal-gamma with nu0-D+1 degrees of freedom), the weight term is there once.
  So c(S) is the full formula with M_S replaced by its diagonal.
- ``spherical``: g has (D nu/2) log tau - tau tr(M_S)/2, tau = D nu/tr(M_S): M_S is replaced by (tr M_S/D) I.
- ``known``: Lambda is given and has no Wishart factor, only the mean's prior adds 1 to n:
  c(S) = m log(m/Nt) + (D/2) log b0 + ((n+1)/2) logdet Lambda - tr(Lambda (M_S - W0^-1))/2.
- ``tied``: one Lambda with one Wishart factor and K means, so F = max over Lambda of
  ((nu0-D-1)/2) logdet Lambda - tr(W0^-1 Lambda)/2 + sum_k c_known(S_k; Lambda). With nu = v+K-1+N and
  M = W0^-1 + sum_k (M_Sk - W0^-1) it is attained at nu M^-1 and is
  sum_k [m_k log(m_k/Nt) + (D/2) log b0] + (D nu/2)(log nu - 1) - (nu/2) logdet M.

Empty clusters follow the same formulas with 0 log 0 = 0 (for nu = 0 the supremum is the limit Lambda = 0).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from certimap.mixture.prior import FloatArray, NormalWishartPrior, checked_sample_weight, restrict

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of a set of points: n, mean and scatter about it; coordinates are centred on m0."""

    weight: float
    mean: FloatArray
    scatter: FloatArray

    @classmethod
    def from_sums(cls, weight: float, total: ArrayLike, second_moment: ArrayLike) -> "Statistics":
        """From n, sum y and sum y y'."""
        s, Q = np.asarray(total, dtype=np.float64), np.asarray(second_moment, dtype=np.float64)
        mean = s / weight if weight > 0.0 else np.zeros_like(s)
        return cls(float(weight), mean, Q - weight * np.outer(mean, mean))


@dataclass(frozen=True, eq=False)
class Items:
    """What is assigned to clusters as one: a point, or a group of points that must stay together.

    Attributes:
        weight: n of each item, shape (I,).
        mean: mean of each item, centred on m0, shape (I, D).
        group_index: row of `group_scatter`, or -1 for an item without spread, shape (I,).
        group_scatter: scatter of the groups about their means, shape (G, D, D).
    """

    weight: FloatArray
    mean: FloatArray
    group_index: IntArray
    group_scatter: FloatArray

    def __post_init__(self) -> None:
        for array in (self.weight, self.mean, self.group_index, self.group_scatter):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.mean.shape[1])

    @property
    def total_weight(self) -> float:
        """N, each point counted as often as its weight says."""
        return float(self.weight.sum())

    @classmethod
    def from_points(
        cls, centred: FloatArray, sample_weight: ArrayLike | None = None, point_item: IntArray | None = None
    ) -> "Items":
        """Sum up points centred on m0; ``point_item[i]`` in 0..I-1 is the item of point i (default: its own)."""
        weight = checked_sample_weight(sample_weight, len(centred))
        if point_item is None:
            empty = np.zeros((0, centred.shape[1], centred.shape[1]))
            return cls(weight, np.array(centred, dtype=np.float64), np.full(len(centred), -1, dtype=np.int64), empty)
        item_weight = np.bincount(point_item, weights=weight).astype(np.float64)
        safe = np.where(item_weight > 0.0, item_weight, 1.0)
        mean = (
            np.stack([np.bincount(point_item, weights=weight * column) for column in centred.T], axis=1) / safe[:, None]
        )
        group_index = np.full(len(item_weight), -1, dtype=np.int64)
        group_of_point = np.bincount(point_item)[point_item] > 1
        groups = np.unique(point_item[group_of_point])
        group_index[groups] = np.arange(len(groups))
        scatter = np.zeros((len(groups), centred.shape[1], centred.shape[1]))
        deviation = centred[group_of_point] - mean[point_item[group_of_point]]
        products = weight[group_of_point, None, None] * deviation[:, :, None] * deviation[:, None, :]
        np.add.at(scatter, group_index[point_item[group_of_point]], products)
        return cls(item_weight, mean, group_index, scatter)

    def statistics(self, members: ArrayLike) -> Statistics:
        """Statistics of a set of items, given by their indices or by a mask."""
        chosen = np.asarray(members)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        weight, means = self.weight[chosen], self.mean[chosen]
        total = float(weight.sum())
        mean = weight @ means / total if total > 0.0 else np.zeros(self.dimension)
        deviation = means - mean
        groups = self.group_index[chosen]
        scatter = (deviation * weight[:, None]).T @ deviation + self.group_scatter[groups[groups >= 0]].sum(axis=0)
        return Statistics(total, mean, scatter)


@dataclass(frozen=True, eq=False)
class MixtureParameters:
    """MAP parameters of a partition: pi (K,), mu (K, D) in the data's coordinates, Lambda (K, D, D)."""

    weights: FloatArray
    means: FloatArray
    precisions: FloatArray


@dataclass(frozen=True, eq=False)
class PartitionObjective(ABC):
    """F of a partition of the items into K clusters, for one covariance type."""

    prior: NormalWishartPrior
    items: Items
    n_clusters: int

    @abstractmethod
    def partition_value(self, labels: ArrayLike) -> float:
        """F: sum of the factor terms at the optimal parameters for the given item labels."""

    @abstractmethod
    def precisions(self, statistics: list[Statistics]) -> FloatArray:
        """MAP precision of every cluster, shape (K, D, D)."""

    def parameters(self, labels: ArrayLike) -> MixtureParameters:
        """MAP parameters for the given item labels: pi = m/Nt, mu and Lambda as in the module's formulas."""
        statistics = self.cluster_statistics(labels)
        return MixtureParameters(
            np.array([self._pseudo_weight(s.weight) for s in statistics]) / self.total_pseudo_weight,
            np.array(
                [self.prior.mean + s.weight * s.mean / (self.prior.mean_precision + s.weight) for s in statistics]
            ),
            self.precisions(statistics),
        )

    def cluster_statistics(self, labels: ArrayLike) -> list[Statistics]:
        """Statistics of the K clusters."""
        assigned = np.asarray(labels)
        if assigned.shape != (len(self.items),):
            raise ValueError(f"labels must have one entry per item, shape ({len(self.items)},), got {assigned.shape}.")
        if ((assigned < 0) | (assigned >= self.n_clusters)).any():
            raise ValueError(f"labels must be in 0..{self.n_clusters - 1}, got {assigned.min()}..{assigned.max()}.")
        return [self.items.statistics(assigned == k) for k in range(self.n_clusters)]

    @property
    def total_pseudo_weight(self) -> float:
        """Nt = N + K (a0 - 1)."""
        return self.items.total_weight + self.n_clusters * (self.prior.weight_concentration - 1.0)

    def _pseudo_weight(self, weight: float) -> float:
        return weight + self.prior.weight_concentration - 1.0

    def _weight_and_mean_term(self, weight: float) -> float:
        """m log(m/Nt) + (D/2) log b0."""
        m = self._pseudo_weight(weight)
        half_dimension = 0.5 * self.items.dimension
        return float(xlogy(m, m / self.total_pseudo_weight) + half_dimension * np.log(self.prior.mean_precision))

    def _scatter_about_posterior_mean(self, statistics: Statistics) -> FloatArray:
        """M_S - W0^-1 = scatter about the mean + (b0 n/(b0+n)) mean mean'."""
        n, b0 = statistics.weight, self.prior.mean_precision
        return statistics.scatter + (b0 * n / (b0 + n)) * np.outer(statistics.mean, statistics.mean)


class SeparableObjective(PartitionObjective):
    """F = sum_k c(S_k)."""

    @abstractmethod
    def value_of_statistics(self, statistics: Statistics) -> float:
        """c(S) from the statistics of S."""

    def value(self, members: ArrayLike) -> float:
        """c(S) of a set of items, given by their indices or by a mask."""
        return self.value_of_statistics(self.items.statistics(members))

    def partition_value(self, labels: ArrayLike) -> float:
        return sum(self.value_of_statistics(s) for s in self.cluster_statistics(labels))


class FreePrecisionClusters(SeparableObjective):
    """``full``, ``diag`` and ``spherical``: every cluster has its own precision."""

    def value_of_statistics(self, statistics: Statistics) -> float:
        M = self._restricted_scatter(statistics)
        nu = self.prior.prior_weight + statistics.weight
        return self._weight_and_mean_term(statistics.weight) + _maximised_precision_term(nu, M)

    def precisions(self, statistics: list[Statistics]) -> FloatArray:
        return np.array(
            [(self.prior.prior_weight + s.weight) * np.linalg.inv(self._restricted_scatter(s)) for s in statistics]
        )

    def _restricted_scatter(self, statistics: Statistics) -> FloatArray:
        M = self.prior.covariance + self._scatter_about_posterior_mean(statistics)
        return restrict(M, self.prior.covariance_type)


@dataclass(frozen=True, eq=False)
class FixedPrecisionClusters(SeparableObjective):
    """Every cluster has the same given precision: a ``known`` covariance, or ``tied`` at one Lambda.

    The precision is held as A with Lambda = A'A: traces are then sums of squares, exact also for a Lambda whose
    eigenvalues lie far apart.
    """

    whitening: FloatArray

    def value_of_statistics(self, statistics: Statistics) -> float:
        A = self.whitening
        trace = float(np.sum((A @ self._scatter_about_posterior_mean(statistics)) * A))
        log_determinant = 2.0 * float(np.linalg.slogdet(A)[1])
        determinant_term = 0.5 * (statistics.weight + 1.0) * log_determinant
        return self._weight_and_mean_term(statistics.weight) + determinant_term - 0.5 * trace

    def precisions(self, statistics: list[Statistics]) -> FloatArray:
        return np.repeat((self.whitening.T @ self.whitening)[None], len(statistics), axis=0)


class TiedClusters(PartitionObjective):
    """``tied``: one precision for all clusters, so that F is a sum over clusters only once it is fixed.

    F(z) = max over Lambda of [shared_term(Lambda) + sum_k at_precision(Lambda).value(S_k)].
    """

    def partition_value(self, labels: ArrayLike) -> float:
        statistics = self.cluster_statistics(labels)
        separable = sum(self._weight_and_mean_term(s.weight) for s in statistics)
        return separable + _maximised_precision_term(self._shared_weight, self._pooled_scatter(statistics))

    def precisions(self, statistics: list[Statistics]) -> FloatArray:
        shared = self._shared_weight * np.linalg.inv(self._pooled_scatter(statistics))
        return np.repeat(shared[None], len(statistics), axis=0)

    def at_precision(self, precision: FloatArray) -> FixedPrecisionClusters:
        """The objective that splits over clusters once Lambda is fixed."""
        return FixedPrecisionClusters(
            self.prior, self.items, self.n_clusters, np.linalg.cholesky(precision).T.astype(np.float64)
        )

    def shared_term(self, precision: FloatArray) -> float:
        """((nu0-D-1)/2) logdet Lambda - tr(W0^-1 Lambda)/2."""
        trace = float(np.sum(self.prior.covariance * precision))
        return 0.5 * (self.prior.prior_weight - 1.0) * _log_determinant(precision) - 0.5 * trace

    @property
    def _shared_weight(self) -> float:
        return self.prior.prior_weight + self.n_clusters - 1.0 + self.items.total_weight

    def _pooled_scatter(self, statistics: list[Statistics]) -> FloatArray:
        pooled: FloatArray = self.prior.covariance + sum(self._scatter_about_posterior_mean(s) for s in statistics)
        return pooled


def partition_objective(prior: NormalWishartPrior, items: Items, n_clusters: int) -> PartitionObjective:
    """The objective of the prior's covariance type."""
    if prior.covariance_type == "tied":
        return TiedClusters(prior, items, n_clusters)
    if prior.covariance_type == "known":
        return FixedPrecisionClusters(prior, items, n_clusters, np.linalg.inv(np.linalg.cholesky(prior.covariance)))
    return FreePrecisionClusters(prior, items, n_clusters)


def _maximised_precision_term(nu: float, M: FloatArray) -> float:
    """max over Lambda of (nu/2) logdet Lambda - tr(Lambda M)/2 = (D nu/2)(log nu - 1) - (nu/2) logdet M."""
    dimension = len(M)
    return float(0.5 * dimension * (xlogy(nu, nu) - nu) - 0.5 * nu * _log_determinant(M))


def _log_determinant(matrix: FloatArray) -> float:
    return 2.0 * float(np.log(np.diag(np.linalg.cholesky(matrix))).sum())
