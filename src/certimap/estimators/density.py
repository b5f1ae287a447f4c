"""The mixture density at given parameters."""

from __future__ import annotations

import numpy as np

from certimap.mixture.prior import CovarianceType, FloatArray


def weighted_log_densities(X: FloatArray, weights: FloatArray, means: FloatArray, precisions: FloatArray) -> FloatArray:
    """log pi_k + log N(x_i; mu_k, Lambda_k^-1), shape (N, K); -inf for a component of weight 0."""
    columns = []
    for mean, precision in zip(means, precisions, strict=True):
        factor = np.linalg.cholesky(precision)
        squares = (((X - mean) @ factor) ** 2).sum(axis=1)
        half_log_determinant = np.log(np.diag(factor)).sum()
        columns.append(half_log_determinant - 0.5 * (squares + X.shape[1] * np.log(2.0 * np.pi)))
    with np.errstate(divide="ignore"):
        return np.asarray(np.stack(columns, axis=1) + np.log(weights))


def compact(matrices: FloatArray, covariance_type: CovarianceType) -> FloatArray:
    """K matrices in the shape that scikit-learn gives the covariance type.

    full (K, D, D), tied and known (D, D), diag (K, D), spherical (K,).
    """
    if covariance_type in ("tied", "known"):
        return np.asarray(matrices[0])
    if covariance_type == "diag":
        return np.diagonal(matrices, axis1=1, axis2=2).copy()
    return matrices[:, 0, 0].copy() if covariance_type == "spherical" else matrices


def expanded(compacted: FloatArray, covariance_type: CovarianceType, n_clusters: int, dimension: int) -> FloatArray:
    """The inverse of `compact`: shape (K, D, D)."""
    if covariance_type in ("tied", "known"):
        return np.broadcast_to(compacted, (n_clusters, dimension, dimension))
    if covariance_type == "diag":
        return compacted[:, :, None] * np.eye(dimension)
    return compacted[:, None, None] * np.eye(dimension) if covariance_type == "spherical" else compacted
