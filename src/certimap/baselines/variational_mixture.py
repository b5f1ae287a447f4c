"""Variational Bayes for the mixture: scikit-learn's BayesianGaussianMixture with the same prior."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from certimap.baselines.mixture_posterior import check_unconstrained, run_of
from certimap.baselines.run import MethodRun
from certimap.mixture.problem import MixtureProblem
from certimap.results import StopReason

NAME = "variational Bayes"


def variational_mixture(problem: MixtureProblem, *, n_init: int = 10, max_iter: int = 1000, seed: int = 0) -> MethodRun:
    """The best of `n_init` runs by the evidence bound; labels are the most probable ones, parameters the means of q.

    The bound on the evidence that variational Bayes maximises says nothing about the largest posterior density.
    """
    check_unconstrained(problem, NAME)
    prior = problem.prior
    started = time.perf_counter()
    model = BayesianGaussianMixture(
        n_components=problem.n_clusters,
        covariance_type="full",
        reg_covar=0.0,
        n_init=n_init,
        max_iter=max_iter,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=prior.weight_concentration,
        mean_precision_prior=prior.mean_precision,
        mean_prior=prior.mean,
        degrees_of_freedom_prior=prior.degrees_of_freedom,
        covariance_prior=prior.covariance,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said by the stop reason
        model.fit(problem.data)
    labels = np.asarray(model.predict(problem.data), dtype=np.int64)
    seconds = time.perf_counter() - started
    return run_of(
        NAME,
        problem,
        labels,
        (model.weights_, model.means_, model.precisions_),
        seconds,
        stop_reason=StopReason.STALLED if model.converged_ else StopReason.ITERATIONS,
        details={"evidence bound": float(model.lower_bound_)},
    )
