"""The posterior of the Gaussian mixture at any point, so that every method is measured by one yardstick.

With labels z, weights pi, means mu and precisions Lambda it is the sum of the paper's factor terms,

    sum_i w_i [log pi_z + logdet Lambda_z / 2 - (y_i - mu_z)' Lambda_z (y_i - mu_z) / 2]
    + sum_k [(a0-1) log pi_k + logdet(b0 Lambda_k)/2 - (b0/2) (mu_k - m0)' Lambda_k (mu_k - m0)
             + ((nu0-D-1)/2) logdet Lambda_k - tr(W0^-1 Lambda_k)/2],

whose maximum over pi, mu and Lambda is the closed form that `MixtureProblem.log_map` evaluates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from certimap.baselines.run import MethodRun, unbounded
from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import point_of
from certimap.results import StopReason


def log_density(
    problem: MixtureProblem, labels: ArrayLike, weights: ArrayLike, means: ArrayLike, precisions: ArrayLike
) -> float:
    """The log-posterior of a point, labels of the points given; -inf where it has no density."""
    prior = problem.prior
    if prior.covariance_type != "full":
        raise ValueError(f"the prior must be of the type 'full', got {prior.covariance_type!r}.")
    z = np.asarray(labels, dtype=np.int64)
    pi, mu, Lambda = (np.asarray(part, dtype=np.float64) for part in (weights, means, precisions))
    try:
        factors = np.linalg.cholesky(Lambda)
    except np.linalg.LinAlgError:
        return -np.inf
    half_log_determinant = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    residuals = np.einsum("id,ide->ie", problem.data - mu[z], factors[z])
    counts = np.bincount(z, weights=problem.sample_weight, minlength=problem.n_clusters)
    value = -0.5 * float(problem.sample_weight @ (residuals**2).sum(axis=1))
    value += float(xlogy(counts + prior.weight_concentration - 1.0, pi).sum() + counts @ half_log_determinant)
    shift = np.einsum("kd,kde->ke", mu - prior.mean, factors)
    value += float(prior.prior_weight * half_log_determinant.sum() - 0.5 * prior.mean_precision * (shift**2).sum())
    value += 0.5 * problem.n_clusters * prior.dimension * float(np.log(prior.mean_precision))
    return value - 0.5 * float(np.einsum("de,ked->", prior.covariance, Lambda))


def run_of(
    name: str,
    problem: MixtureProblem,
    labels: IntArray,
    parameters: tuple[FloatArray, FloatArray, FloatArray],
    seconds: float,
    *,
    stop_reason: StopReason = StopReason.ITERATIONS,
    details: dict[str, object] | None = None,
) -> MethodRun:
    """A point of the posterior as returned, and the same labels with optimal parameters."""
    weights, means, precisions = parameters
    returned = {"z": labels, "pi": weights, "mu": means, "Lambda": precisions}
    return MethodRun(
        name,
        unbounded(returned, log_density(problem, labels, *parameters), stop_reason),
        unbounded(point_of(problem, labels), problem.log_map(problem.item_labels(labels)), stop_reason),
        seconds,
        details=details,
    )


def check_unconstrained(problem: MixtureProblem, method: str) -> None:
    """Samplers and variational Bayes know no constraints: refuse them instead of leaving them out."""
    constrained = (
        len(problem.items) < len(problem.data)
        or len(problem.conflict_items)
        or (problem.fixed >= 0).any()
        or problem.min_size > 0
        or problem.max_size < len(problem.data)
        or len(problem.soft_pairs)
    )
    if constrained:
        raise ValueError(f"{method} takes no constraints, got a problem with some.")
    if (problem.sample_weight != 1.0).any():
        raise ValueError(f"{method} takes no sample weights, got {problem.sample_weight.max():g} as the largest.")
