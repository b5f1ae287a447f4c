"""A pricing problem in the coordinates of the kernel: whitened (W0 = I) and centred on the data."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from certimap.mixture.clusters import IntArray, Items
from certimap.mixture.prior import CovarianceType, FloatArray, NormalWishartPrior, restrict

MAX_DIMENSION = 6
FORMS: tuple[CovarianceType, ...] = ("full", "diag", "spherical", "known")  # as numbered in node.hpp
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class WhitenedProblem:
    """Items in coordinates y = transform (x - centre) in which W0, or a known precision, is the identity.

    Attributes:
        covariance_type: one of FORMS.
        weight, mean, factor: n, mean and factor A of the scatter A A' of every item; A is lower triangular. Where only
            the diagonal of the scatter counts, A is diagonal too.
        prior_mean: m0.
        a0, b0, v, Nt: as in c(S).
        transform, centre: the change of coordinates.
        log_det: of W0^-1; c(S) = c_whitened(S) - (v + n) log_det/2, v = 1 for a known precision.
        rounding: bound on the error of c(S), over all S, that the change of coordinates brings.
        min_size, max_size: limits on n of a set; with 0 the empty set is admissible.
        conflicts: pairs of items that must not share a set.
    """

    covariance_type: CovarianceType
    weight: FloatArray
    mean: FloatArray
    factor: FloatArray
    prior_mean: FloatArray
    a0: float
    b0: float
    v: float
    Nt: float
    transform: FloatArray
    centre: FloatArray
    log_det: float
    rounding: float
    min_size: float
    max_size: float
    conflicts: tuple[tuple[int, int], ...]

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.mean.shape[1])

    @property
    def integral(self) -> bool:
        """Whether all sizes are whole numbers."""
        return bool((self.weight == np.round(self.weight)).all())

    @property
    def plain(self) -> bool:
        """Whether the items are single points without conflicts: the kernel's fast case."""
        return bool((self.weight == 1.0).all()) and not self.factor.any() and not self.conflicts

    def empty_value(self) -> float:
        """c of the empty set."""
        return self._value(0.0, np.eye(self.dimension))

    def value(self, members: IntArray) -> float:
        """c(S) of a set of items in closed form."""
        if not len(members):
            return self.empty_value()
        weight, mean = self.weight[members], self.mean[members]
        factors = self.factor[members]
        n = float(weight.sum())
        mass = self.b0 + n
        centre = (self.b0 * self.prior_mean + weight @ mean) / mass
        deviation, shift = mean - centre, self.prior_mean - centre
        M = np.eye(self.dimension) + (deviation * weight[:, None]).T @ deviation + self.b0 * np.outer(shift, shift)
        M += np.einsum("iab,icb->ac", factors, factors)
        return self._value(n, M)

    def _value(self, n: float, M: FloatArray) -> float:
        """c(S) from its weight and M_S, W0 = I included."""
        m, nu = n + self.a0 - 1.0, self.v + n
        value = 0.5 * self.dimension * math.log(self.b0) - 0.5 * nu * self.log_det
        value += m * math.log(m / self.Nt) if m > 0.0 else 0.0
        if self.covariance_type == "known":
            return value - 0.5 * float(np.trace(M) - self.dimension)
        log_det = float(np.linalg.slogdet(restrict(M, self.covariance_type))[1])
        return value + (0.5 * self.dimension * nu * (math.log(nu) - 1.0) if nu > 0.0 else 0.0) - 0.5 * nu * log_det


def whiten(
    items: Items,
    prior: NormalWishartPrior,
    total_weight: float,
    *,
    min_size: float = 0.0,
    max_size: float = math.inf,
    conflicts: Sequence[tuple[int, int]] = (),
    rotation: FloatArray | None = None,
) -> WhitenedProblem:
    """Whiten by the Cholesky factor of W0^-1 and centre on the data.

    Args:
        items: as they are assigned, centred on m0; weights must be positive.
        prior: of any covariance type but ``tied``.
        total_weight: Nt = N + K (a0 - 1).
        min_size, max_size: limits on the weight of a set.
        conflicts: pairs of items that must not share a set.
        rotation: an orthogonal matrix applied last; the box coordinates follow its axes. Default: the axes of
            `cluster_axes` are worth computing where a clustering is known. None for ``diag``, whose axes are given.
    """
    if prior.covariance_type not in FORMS:
        raise ValueError(
            f"prior must have one of the covariance types {', '.join(FORMS)} to be priced here, "
            f"got {prior.covariance_type!r}."
        )
    if rotation is not None and prior.covariance_type == "diag" and (rotation != np.eye(len(rotation))).any():
        raise ValueError("rotation must be None for covariance_type 'diag': it would mix the features.")
    if items.dimension > MAX_DIMENSION:
        raise ValueError(f"items must have at most {MAX_DIMENSION} features, got {items.dimension}.")
    if (items.weight <= 0.0).any():
        raise ValueError("items must have positive weights: an item of weight 0 belongs anywhere.")
    # Powers of two bring the features to one scale without any error; only what is left has a condition that matters.
    unit = np.exp2(np.round(0.5 * np.log2(np.diag(prior.covariance))))
    chol = np.linalg.cholesky(prior.covariance / np.outer(unit, unit))
    transform = np.linalg.solve(chol, np.eye(items.dimension)) / unit
    if rotation is not None:
        transform = np.asarray(rotation, dtype=np.float64) @ transform
    centre = items.weight @ items.mean / items.total_weight
    mean = (items.mean - centre) @ transform.T
    factor = np.zeros((len(items), items.dimension, items.dimension))
    grouped = items.group_index >= 0
    if grouped.any():
        scatter = transform @ items.group_scatter @ transform.T
        if prior.covariance_type != "full":
            scatter = scatter * np.eye(items.dimension)
        factor[grouped] = _lower_factor(scatter)[items.group_index[grouped]]
    prior_mean = -transform @ centre
    # |d logdet M_S| <= 2 sum |dy_i| as every leverage (y-mu)' M^-1 (y-mu) is at most 1, and W0 itself moves a little.
    off = np.abs(transform @ prior.covariance @ transform.T - np.eye(items.dimension)).max()
    reach = float(
        (items.weight * np.linalg.norm(mean, axis=1)).sum() + prior.mean_precision * np.linalg.norm(prior_mean)
    )
    spread = float((factor**2).sum()) ** 0.5
    scale = float(np.linalg.cond(chol))
    drift = items.dimension * off + 8.0 * items.dimension * _EPS * scale * (reach + spread + items.dimension)
    v = 1.0 if prior.covariance_type == "known" else prior.prior_weight
    rounding = 0.5 * (v + items.total_weight) * drift
    if prior.covariance_type == "known":
        # Not logarithms but the squares themselves: a relative error of each, and no less for small ones.
        squares = float(items.weight @ (mean**2).sum(axis=1)) + prior.mean_precision * float(prior_mean @ prior_mean)
        rounding += (items.dimension * off + 16.0 * items.dimension * _EPS * scale) * (squares + spread**2)
    return WhitenedProblem(
        covariance_type=prior.covariance_type,
        weight=items.weight,
        mean=mean,
        factor=factor,
        prior_mean=prior_mean,
        a0=prior.weight_concentration,
        b0=prior.mean_precision,
        v=v,
        Nt=float(total_weight),
        transform=transform,
        centre=centre + prior.mean,
        log_det=2.0 * float(np.log(np.diag(chol)).sum() + np.log(unit).sum()),
        rounding=rounding,
        min_size=float(min_size),
        max_size=float(max_size),
        conflicts=tuple((int(i), int(j)) for i, j in conflicts),
    )


def cluster_axes(items: Items, prior: NormalWishartPrior, labels: ArrayLike) -> FloatArray:
    """Rotation onto the axes of the pooled within-cluster covariance: there, clusters have small slopes b.

    The identity for ``diag``, where only the features themselves will do.
    """
    if prior.covariance_type == "diag":
        return np.eye(items.dimension)
    assigned = np.asarray(labels)
    chol = np.linalg.cholesky(prior.covariance)
    pooled = np.eye(items.dimension)
    for k in np.unique(assigned):
        scatter = np.linalg.solve(chol, items.statistics(assigned == k).scatter)
        pooled += np.linalg.solve(chol, scatter.T)
    axes: FloatArray = np.linalg.eigh(0.5 * (pooled + pooled.T))[1].T
    return axes


def _lower_factor(scatter: FloatArray) -> FloatArray:
    """Lower triangular A with A A' = scatter, also where it is singular."""
    values, vectors = np.linalg.eigh(scatter)
    half = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
    factor: FloatArray = np.linalg.qr(half)[1].transpose(0, 2, 1)
    return np.ascontiguousarray(factor)
