"""`GaussianMixtureMAP`: constrained, certified clustering with a Bayesian Gaussian mixture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from scipy.special import logsumexp
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from certimap.estimators.base import CertifiedEstimator
from certimap.estimators.density import compact, expanded, weighted_log_densities
from certimap.estimators.errors import NoFeasiblePointError, named_caller
from certimap.mixture.clusters import IntArray
from certimap.mixture.constraints import ClusterConstraints, Link
from certimap.mixture.factor import mixture_model
from certimap.mixture.kernel.gpu import DeviceChoice
from certimap.mixture.prior import CovarianceType, FloatArray, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import MixtureAlgorithm, solve_mixture
from certimap.model.model import Model
from certimap.report.clustering import describe_mixture
from certimap.report.log import LogTable
from certimap.results import Result


class GaussianMixtureMAP(ClusterMixin, CertifiedEstimator):
    """Maximum a-posteriori clustering by a Bayesian Gaussian mixture, with a bound on every other clustering.

    The posterior over labels z, weights pi, means mu and precisions Lambda is maximised jointly:

        pi ~ Dirichlet(a0),  mu_k | Lambda_k ~ Normal(m0, (b0 Lambda_k)^-1),  Lambda_k ~ Wishart(W0, nu0),
        z_i ~ pi,  x_i | z_i = k ~ Normal(mu_k, Lambda_k^-1).

    Clusters may stay empty where the posterior wants fewer than `n_components` of them.

    Parameters
    ----------
    n_components : int
        K, the largest number of clusters.
    covariance_type : {"full", "tied", "diag", "spherical", "known"}, default="full"
        Which covariances a cluster may have; "known": all have the matrix `covariance_prior`.
    weight_concentration_prior : float, default=1.0
        a0 >= 1.
    mean_precision_prior : float, default=1.0
        b0 > 0.
    mean_prior : array of shape (n_features,), default=None
        m0; None: the mean of X.
    degrees_of_freedom_prior : float, default=None
        nu0 >= n_features; None: n_features + 2.
    covariance_prior : array of shape (n_features, n_features), default=None
        W0^-1; None: the covariance of X. A vector of variances will do for "diag" and "spherical".
    tol : float, default=1e-3
        Relative gap (upper_bound_ - log_map_) / max(1, |log_map_|) at which the answer counts as OPTIMAL.
    max_nodes : int, default=10_000_000
        Nodes after which the proof stops with the bound it has; None: no limit.
    time_limit : float, default=None
        Seconds after which the fit stops with what it has. Answers are reproducible without it.
    n_init : int, default=100
        Starts of the local search.
    random_state : int, RandomState instance or None, default=None
        Seed of the local search; an int makes the answer reproducible.
    n_jobs : int, default=None
        Threads; None is 1, -1 all cores. The answer does not depend on it.
    algorithm : {"auto", "local-search"}, default="auto"
        "local-search" leaves the proof out.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where long proofs run: "auto" takes a GPU if CuPy finds one (extra "gpu"). It does a hundred million nodes a
        second, so that `max_nodes` may well be raised there.
    n_top : int, default=1
        How many of the best clusterings to rank, with a proof that no other one comes before them; 1: no ranking.
    verbose : int, default=0
        1 prints the log table.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of every point; satisfies every hard constraint.
    weights_, means_, precisions_, covariances_ : arrays
        Optimal parameters for the labels, in the shapes that scikit-learn's GaussianMixture gives the covariance type.
        Empty clusters have the parameters of the prior.
    log_map_ : float
        Log-posterior density of labels and parameters, in closed form, without the constants of the model.
    upper_bound_ : float
        No clustering that satisfies the constraints is worth more; inf if nothing was proved.
    gap_ : float
        upper_bound_ - log_map_.
    status_ : certimap.Status
        What is proved.
    stop_reason_ : certimap.StopReason
        Why the fit ended.
    certificate_ : certimap.Certificate or None
        The proof.
    top_partitions_ : certimap.results.Ranking or None
        The best clusterings, with `labels`, `log_map` and exact `difference` to the best one; `others` bounds all that
        are not in it. As many as were proved, which can be fewer than `n_top`, or none. None without `n_top`.
    neighbourhood_ : str or None
        Where the gap stays open: within what no clustering is better, such as all with at most 4 points moved.
    history_ : tuple of certimap.IterationRecord
    result_ : certimap.Result
        All of these in one.
    problem_ : MixtureProblem
        What was solved: data, prior and constraints; `model()` is it as a factor graph.
    constraints_ : ClusterConstraints
        The constraints of the fit, checked.
    prior_ : NormalWishartPrior
        The prior with its defaults filled in.
    seed_ : int
        The seed that was used.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from certimap import GaussianMixtureMAP
    >>> X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> model = GaussianMixtureMAP(2, random_state=0).fit(X, cannot_link=[(0, 1)], min_cluster_size=2)
    >>> bool(model.labels_[0] != model.labels_[1])
    True
    """

    def __init__(
        self,
        n_components: int,
        *,
        covariance_type: CovarianceType = "full",
        weight_concentration_prior: float = 1.0,
        mean_precision_prior: float = 1.0,
        mean_prior: ArrayLike | None = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: ArrayLike | None = None,
        tol: float = 1e-3,
        max_nodes: int | None = 10_000_000,
        time_limit: float | None = None,
        n_init: int = 100,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        algorithm: MixtureAlgorithm = "auto",
        device: DeviceChoice = "auto",
        n_top: int = 1,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.tol = tol
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.algorithm = algorithm
        self.device = device
        self.n_top = n_top
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        must_link: Iterable[Link] | None = None,
        cannot_link: Iterable[Link] | None = None,
        min_cluster_size: int | None = None,
        max_cluster_size: int | None = None,
    ) -> Self:
        """Find the clustering of largest posterior density under the constraints, and bound all others.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : integers of shape (n_samples,), default=None
            Known clusters: point i must be in cluster y[i], or anywhere where y[i] is -1. Unlike the y of other
            clusterers it is not ignored: a known cluster is a hard constraint, and a number that names no cluster
            0..n_components-1 is an error. Class names of a supervised task do not belong here.
        sample_weight : array of shape (n_samples,), default=None
            A point of weight w counts w times in the posterior, once in cluster sizes.
        must_link, cannot_link : pairs (i, j) or triples (i, j, weight), default=None
            Points, by row, that must share a cluster or must not. A weight makes the link soft: violating it costs
            that much log-density.
        min_cluster_size, max_cluster_size : int, default=None
            Bounds on the number of points of every cluster; a minimum leaves no cluster empty.

        Raises
        ------
        ValueError
            For a wrong argument, and for constraints that no clustering satisfies (NoFeasiblePointError, which
            names the conflict).
        """
        caller = f"{type(self).__name__}.fit"
        least_points = 2 if self.covariance_prior is None else 1
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=least_points)
        with named_caller(caller):
            self._check_parameters()
            constraints = ClusterConstraints.from_arguments(
                len(data),
                int(self.n_components),
                y=y,
                must_link=must_link,
                cannot_link=cannot_link,
                min_cluster_size=min_cluster_size,
                max_cluster_size=max_cluster_size,
            )
            prior = self._prior(data, sample_weight)
            problem = constraints.problem(data, prior, int(self.n_components), sample_weight)
            seed = self._seed()
            result = self._solve(problem, constraints, seed)
        if result.assignment is None:
            raise NoFeasiblePointError(caller, result)
        self.problem_, self.constraints_, self.prior_, self.seed_ = problem, constraints, prior, seed
        self._store(result)
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **constraints: Any) -> IntArray:
        """`fit`, and the labels of the points."""
        return self.fit(X, y, **constraints).labels_

    def predict(self, X: ArrayLike) -> IntArray:
        """The most probable cluster of every point at the fitted parameters; no constraint binds new points."""
        return np.asarray(self._weighted_log_densities(X).argmax(axis=1))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of every cluster for every point at the fitted parameters, shape (n_samples, n_components)."""
        densities = self._weighted_log_densities(X)
        return np.exp(densities - logsumexp(densities, axis=1, keepdims=True))

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of every point under the fitted mixture, shape (n_samples,)."""
        return np.asarray(logsumexp(self._weighted_log_densities(X), axis=1))

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Mean log-density of the points under the fitted mixture; y is ignored."""
        return float(self.score_samples(X).mean())

    def model(self) -> Model:
        """The factor graph that the certificate speaks about: `verify(mixture.certificate_, mixture.model())`."""
        check_is_fitted(self)
        return mixture_model(self.problem_)

    # ------------------------------------------------------------------------------------------------------ the fit
    def _check_parameters(self) -> None:
        self._check_integers("n_components", "n_init", "n_top", optional=("max_nodes",))
        self._check_numbers(
            "weight_concentration_prior",
            "mean_precision_prior",
            "tol",
            optional=("degrees_of_freedom_prior",),
        )

    def _prior(self, data: FloatArray, sample_weight: ArrayLike | None) -> NormalWishartPrior:
        return NormalWishartPrior.from_data(
            data,
            self.covariance_type,
            weight_concentration_prior=self.weight_concentration_prior,
            mean_precision_prior=self.mean_precision_prior,
            mean_prior=self.mean_prior,
            degrees_of_freedom_prior=self.degrees_of_freedom_prior,
            covariance_prior=self.covariance_prior,
            sample_weight=sample_weight,
        )

    def _solve(self, problem: MixtureProblem, constraints: ClusterConstraints, seed: int) -> Result:
        heading = describe_mixture(problem, constraints)
        with LogTable(Console(quiet=not self.verbose), heading=heading, gap=self.tol, seed=seed) as log:
            result = solve_mixture(
                problem,
                tol=self.tol,
                max_nodes=self.max_nodes,
                time_limit=self.time_limit,
                n_init=int(self.n_init),
                seed=seed,
                n_jobs=self.n_jobs,
                algorithm=self.algorithm,
                device=self.device,
                n_top=int(self.n_top),
                callback=log,
            )
            log.finish(result)
        return result

    def _store(self, result: Result) -> None:
        assert result.assignment is not None
        point = result.assignment
        self.labels_: IntArray = point["z"]
        self.weights_: FloatArray = point["pi"]
        self.means_: FloatArray = point["mu"]
        self.precisions_ = compact(point["Lambda"], self.covariance_type)
        self.covariances_ = compact(np.linalg.inv(point["Lambda"]), self.covariance_type)
        self.top_partitions_ = result.ranking
        self.neighbourhood_ = result.neighbourhood
        self._store_result(result)

    def _weighted_log_densities(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        data: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        precisions = expanded(self.precisions_, self.covariance_type, len(self.means_), data.shape[1])
        return weighted_log_densities(data, self.weights_, self.means_, precisions)
