"""The prior of the Gaussian mixture, checked before anything is computed from it.

One class serves all covariance types. The prior of a cluster with mean mu and precision Lambda is

    Normal(mu; m0, (b0 Lambda)^-1) * Wishart(Lambda; W0, nu0),   pi ~ Dirichlet(a0, ..., a0),

and a covariance type keeps this density but admits only some precisions: any (``full``), one shared by all
clusters (``tied``, one Wishart factor in all), diagonal (``diag``), a multiple of the identity (``spherical``).
Restricting a density to fewer matrices changes its normalising constant only, which `log_map` drops. Two things follow.
``diag`` is a product of normal-gammas: feature d has the exponent (nu0-D-1)/2 of a Wishart in one dimension with
nu0-D+1 degrees of freedom. And on the same prior every partition has value
``spherical`` <= ``diag`` <= ``full``. A ``known`` covariance has no Wishart factor at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

CovarianceType: TypeAlias = Literal["full", "tied", "diag", "spherical", "known"]
FloatArray: TypeAlias = NDArray[np.float64]

COVARIANCE_TYPES: tuple[CovarianceType, ...] = get_args(CovarianceType)


@dataclass(frozen=True, eq=False)
class NormalWishartPrior:
    """Prior parameters in the symbols of the model; build it with `from_data` or directly.

    Attributes:
        covariance_type: which precisions a cluster may have.
        weight_concentration: a0 >= 1.
        mean_precision: b0 > 0.
        mean: m0, shape (D,).
        degrees_of_freedom: nu0 >= D; plays no part when the covariance is known.
        covariance: W0^-1, shape (D, D), diagonal for ``diag`` and a multiple of the identity for ``spherical``;
            the cluster covariance itself when it is ``known``.
    """

    covariance_type: CovarianceType
    weight_concentration: float
    mean_precision: float
    mean: FloatArray
    degrees_of_freedom: float
    covariance: FloatArray

    def __post_init__(self) -> None:
        if self.covariance_type not in COVARIANCE_TYPES:
            raise ValueError(
                f"covariance_type must be one of {', '.join(COVARIANCE_TYPES)}, got {self.covariance_type!r}."
            )
        dimension = len(self.mean)
        _check_scalar(
            "weight_concentration_prior",
            self.weight_concentration,
            1.0,
            "below 1 the posterior density is unbounded where the weight of an empty cluster goes to 0, "
            "so that no MAP exists",
        )
        if not (np.isfinite(self.mean_precision) and self.mean_precision > 0.0):
            raise ValueError(
                f"mean_precision_prior must be a finite number > 0, got {self.mean_precision!r}: "
                "at 0 the mean of an empty cluster is undetermined."
            )
        if self.covariance_type != "known":
            _check_scalar(
                "degrees_of_freedom_prior",
                self.degrees_of_freedom,
                float(dimension),
                f"below the dimension D = {dimension} the posterior density is unbounded where the precision of an "
                "empty cluster goes to 0",
            )
        _check_vector("mean_prior", self.mean, dimension)
        _check_positive_definite("covariance_prior", self.covariance, dimension)
        for name in ("mean", "covariance"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def dimension(self) -> int:
        """D."""
        return len(self.mean)

    @property
    def prior_weight(self) -> float:
        """v = nu0 - D: how many points the prior counts for in a cluster's precision."""
        return self.degrees_of_freedom - self.dimension

    @classmethod
    def from_data(
        cls,
        X: ArrayLike,
        covariance_type: CovarianceType = "full",
        *,
        weight_concentration_prior: float = 1.0,
        mean_precision_prior: float = 1.0,
        mean_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "NormalWishartPrior":
        """Fill in what the user left open: m0 = mean of X, nu0 = D + 2, W0^-1 = covariance of X.

        A point of weight w counts w times, in the defaults too. ``covariance_prior`` may be a matrix, a vector of
        variances (``diag``, ``spherical``) or one variance (``spherical``); when the covariance is known it is that
        covariance and must be given.
        """
        data = np.asarray(X, dtype=np.float64)
        if data.ndim != 2 or 0 in data.shape:
            raise ValueError(f"X must be a non-empty array of shape (points, features), got shape {data.shape}.")
        if not np.isfinite(data).all():
            raise ValueError("X must be finite, got NaN or infinity.")
        if covariance_type not in COVARIANCE_TYPES:
            raise ValueError(f"covariance_type must be one of {', '.join(COVARIANCE_TYPES)}, got {covariance_type!r}.")
        if covariance_type == "known" and degrees_of_freedom_prior is not None:
            raise ValueError(
                f"degrees_of_freedom_prior must be None, got {degrees_of_freedom_prior!r}: "
                "a known covariance has no Wishart prior."
            )
        dimension = data.shape[1]
        weight = checked_sample_weight(sample_weight, len(data))
        mean = (weight @ data) / weight.sum() if mean_prior is None else np.array(mean_prior, dtype=np.float64)
        _check_vector("mean_prior", mean, dimension)
        covariance = (
            _default_covariance(data, weight, covariance_type)
            if covariance_prior is None
            else _as_matrix(np.asarray(covariance_prior, dtype=np.float64), covariance_type, dimension)
        )
        return cls(
            covariance_type=covariance_type,
            weight_concentration=float(weight_concentration_prior),
            mean_precision=float(mean_precision_prior),
            mean=mean,
            degrees_of_freedom=float(dimension + 2 if degrees_of_freedom_prior is None else degrees_of_freedom_prior),
            covariance=restrict(covariance, covariance_type) if covariance.ndim == 2 else covariance,
        )


def restrict(matrix: FloatArray, covariance_type: CovarianceType) -> FloatArray:
    """The part of a symmetric A that tr(A Lambda) sees when Lambda is of the covariance type."""
    if covariance_type == "diag":
        diagonal: FloatArray = np.diag(np.diag(matrix))
        return diagonal
    if covariance_type == "spherical":
        return np.eye(len(matrix)) * float(np.diag(matrix).mean())
    return matrix


def checked_sample_weight(sample_weight: ArrayLike | None, n_points: int) -> FloatArray:
    """Weights of the points, 1 each by default; finite, non-negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_points)
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n_points,):
        raise ValueError(f"sample_weight must have one entry per point, shape ({n_points},), got {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0.0).any():
        raise ValueError(
            f"sample_weight must be finite and >= 0, got {weight.min()} .. {weight.max()}: a point counts w times."
        )
    if weight.sum() <= 0.0:
        raise ValueError("sample_weight must not be zero everywhere: no point would be left.")
    return weight


def _check_scalar(name: str, value: float, least: float, why: str) -> None:
    if not (np.isfinite(value) and value >= least):
        raise ValueError(f"{name} must be a finite number >= {least:g}, got {value!r}: {why}.")


def _check_vector(name: str, value: FloatArray, dimension: int) -> None:
    if value.shape != (dimension,) or not np.isfinite(value).all():
        raise ValueError(f"{name} must be finite, one entry per feature, shape ({dimension},), got {value!r}.")


def _check_positive_definite(name: str, matrix: FloatArray, dimension: int) -> None:
    if matrix.shape != (dimension, dimension) or not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be a finite matrix of shape ({dimension}, {dimension}), got {matrix!r}.")
    variances = np.diag(matrix)
    if (variances <= 0.0).any():
        raise ValueError(f"{name} must be positive definite, got the variances {variances!r} on its diagonal.")
    # Scaled to unit diagonal, so that features in very different units are no reason to refuse.
    scaled = matrix / np.sqrt(np.outer(variances, variances))
    if not np.allclose(scaled, scaled.T, rtol=0.0, atol=1e-10):
        raise ValueError(f"{name} must be symmetric, got {matrix!r}: it is a covariance.")
    smallest = float(np.linalg.eigvalsh(scaled)[0])
    if smallest <= 8 * dimension * np.finfo(np.float64).eps:
        raise ValueError(
            f"{name} must be positive definite, got {matrix!r} (smallest eigenvalue {smallest:.3g} after scaling "
            "to unit diagonal): in a flat direction the density of an empty or degenerate cluster is unbounded."
        )


def _default_covariance(data: FloatArray, weight: FloatArray, covariance_type: CovarianceType) -> FloatArray:
    if covariance_type == "known":
        raise ValueError(
            "covariance_prior must be given when covariance_type is 'known', got None: it is the known covariance."
        )
    total = weight.sum()
    if total <= 1.0:
        raise ValueError(
            f"covariance_prior must be given for a total of {total:g} point(s), got None: its default is "
            "the covariance of X, which needs more than one point."
        )
    centred = data - (weight @ data) / total
    covariance: FloatArray = (centred * weight[:, None]).T @ centred / (total - 1.0)
    rounding = 8 * np.finfo(np.float64).eps * np.abs(data).max(axis=0)
    constant = np.flatnonzero(np.sqrt(np.diag(covariance)) <= rounding)
    if len(constant):
        raise ValueError(
            f"covariance_prior must be given or feature(s) {_listed(constant)} of X left out, got None: they are "
            "constant, so that the default, the covariance of X, is not positive definite."
        )
    if covariance_type in ("full", "tied"):
        try:
            _check_positive_definite("covariance_prior", covariance, len(covariance))
        except ValueError as error:
            raise ValueError(
                "covariance_prior must be given or a feature of X left out, got None: the features are linearly "
                f"dependent on the {len(data)} point(s), so that the default, the covariance "
                "of X, is not positive definite."
            ) from error
    return covariance


def _as_matrix(given: FloatArray, covariance_type: CovarianceType, dimension: int) -> FloatArray:
    if given.ndim == 0 and (covariance_type == "spherical" or dimension == 1):
        return np.eye(dimension) * given
    if given.shape == (dimension,) and covariance_type in ("diag", "spherical"):
        return np.diag(given)
    return given


def _listed(indices: NDArray[np.intp], most: int = 5) -> str:
    shown: Sequence[str] = [str(i) for i in indices[:most]]
    return ", ".join(shown) + (", ..." if len(indices) > most else "")
