"""Baselines of the mixture: one objective, the model's own conditionals, honest claims."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.baselines.mixtures import mixture
from tests.helpers import ROUNDING

from certimap import Status, StopReason
from certimap.baselines.gibbs_mixture import Chain, binned_mode, gibbs_best, gibbs_chain, gibbs_mode
from certimap.baselines.mixture_posterior import log_density
from certimap.baselines.run import MethodRun
from certimap.baselines.variational_mixture import variational_mixture
from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import solve_mixture


def assert_evaluated(problem: MixtureProblem, run: MethodRun) -> None:
    """Both points have the value that is stated, and the refit is not worse; nothing is claimed about other points."""
    for result in (run.returned, run.refitted):
        assert result.assignment is not None
        point = [result.assignment[name] for name in ("z", "pi", "mu", "Lambda")]
        assert result.log_map == pytest.approx(log_density(problem, *point), rel=ROUNDING)
        assert (result.status, result.upper_bound) == (Status.FEASIBLE, np.inf)
        assert result.certificate is None
    assert run.returned.log_map <= run.refitted.log_map + ROUNDING
    assert run.returned.assignment is not None and run.refitted.assignment is not None
    labels = run.refitted.assignment["z"]
    assert run.refitted.log_map == pytest.approx(problem.log_map(problem.item_labels(labels)), rel=ROUNDING)


@pytest.mark.parametrize("options", [{}, {"weight_concentration_prior": 2.5, "mean_precision_prior": 0.3}])
def test_log_density_is_the_papers_sum_of_terms(options: dict[str, Any]) -> None:
    """Against scipy's densities: the difference is the same constant at every point."""
    problem = mixture(7, 2, 3, **options)
    prior, rng = problem.prior, np.random.default_rng(1)
    differences = []
    for _ in range(4):
        z, pi, mu = rng.integers(3, size=7), rng.dirichlet(np.ones(3)), rng.normal(size=(3, 2))
        Lambda = stats.wishart(4, np.eye(2)).rvs(3, random_state=rng)
        value = float(np.log(pi)[z].sum() + (prior.weight_concentration - 1.0) * np.log(pi).sum())
        for y, k in zip(problem.data, z, strict=True):
            value += stats.multivariate_normal(mu[k], np.linalg.inv(Lambda[k])).logpdf(y)
        for m, precision in zip(mu, Lambda, strict=True):
            spread = np.linalg.inv(prior.mean_precision * precision)
            value += stats.multivariate_normal(prior.mean, spread).logpdf(m)
            value += stats.wishart(prior.degrees_of_freedom, np.linalg.inv(prior.covariance)).logpdf(precision)
        differences.append(value - log_density(problem, z, pi, mu, Lambda))
    assert np.ptp(differences) < 1e-9


def test_closed_form_is_the_density_at_the_optimal_parameters() -> None:
    problem = mixture(9, 2, 3, weight_concentration_prior=1.5, mean_precision_prior=0.7)
    for seed in range(3):
        z = np.random.default_rng(seed).integers(3, size=9)
        best = problem.objective.parameters(z)
        value = log_density(problem, z, best.weights, best.means, best.precisions)
        assert value == pytest.approx(problem.log_map(z), rel=ROUNDING)
    assert log_density(problem, z, best.weights, best.means, -best.precisions) == -np.inf


@pytest.fixture(scope="module")
def chain() -> tuple[MixtureProblem, Chain]:
    problem = mixture(24, 2, 2)
    return problem, gibbs_chain(problem, iterations=400, burn_in=50, seed=3)


def test_every_method_is_measured_on_the_same_objective(chain: tuple[MixtureProblem, Chain]) -> None:
    problem, samples = chain
    ours = solve_mixture(problem, n_init=20, algorithm="local-search")
    for run in (variational_mixture(problem), gibbs_mode(problem, samples), gibbs_best(problem, samples)):
        assert_evaluated(problem, run)
        assert run.claimed_bound is None
        assert run.refitted.log_map <= ours.log_map + ROUNDING


def test_best_sample_is_the_best_after_the_burn_in(chain: tuple[MixtureProblem, Chain]) -> None:
    problem, samples = chain
    values = [
        log_density(problem, samples.labels[t], samples.weights[t], samples.means[t], samples.precisions[t])
        for t in range(50, 400)
    ]
    assert gibbs_best(problem, samples).returned.log_map == max(values)


def test_sampler_draws_from_the_posterior() -> None:
    """Frequencies of the partitions of four points against their exact probabilities, parameters integrated out."""
    problem = mixture(4, 1, 2)
    chain = gibbs_chain(problem, iterations=20_000, burn_in=100)
    codes = chain.labels[100:] @ (2 ** np.arange(4))
    frequency = np.bincount(codes, minlength=16) / len(codes)
    exact = np.array([_log_marginal(problem, [(code >> i) & 1 for i in range(4)]) for code in range(16)])
    probability = np.exp(exact - exact.max())
    probability /= probability.sum()
    assert np.abs(frequency - probability).max() < 0.02
    # Given the labels, E[pi] = (n + 1) / (N + 2).
    for code, share in product((6, 10), (0, 1)):
        rows = np.flatnonzero(codes[:-1] == code) + 101  # weights of the next sweep are drawn from these labels
        expected = (sum((code >> i) & 1 == share for i in range(4)) + 1) / 6
        if len(rows) > 300:
            assert chain.weights[rows, share].mean() == pytest.approx(expected, abs=0.05)


def _log_marginal(problem: MixtureProblem, z: list[int]) -> float:
    """log p(z, y) in one dimension up to a constant: Dirichlet-multinomial times normal-gamma evidences."""
    from scipy.special import gammaln

    prior, y = problem.prior, problem.data[:, 0] - problem.prior.mean[0]
    value = 0.0
    for k in range(problem.n_clusters):
        members = y[np.array(z) == k]
        n, nu = len(members), prior.degrees_of_freedom + len(members)
        b = prior.mean_precision + n
        scale = prior.covariance[0, 0] + (members**2).sum() - members.sum() ** 2 / b
        value += gammaln(prior.weight_concentration + n) + gammaln(0.5 * nu)
        value -= 0.5 * np.log(b) + 0.5 * nu * np.log(scale) - 0.5 * (nu - n) * np.log(prior.covariance[0, 0])
        value -= 0.5 * n * np.log(np.pi)
    return float(value)


def test_sampler_in_the_plane_under_another_prior() -> None:
    """The same with three clusters, two features and no default value in the prior."""
    options = {"weight_concentration_prior": 1.6, "mean_precision_prior": 0.4, "degrees_of_freedom_prior": 5.5}
    X = np.array([[0.0, 1.0], [1.5, 0.5], [2.0, 3.0], [-0.5, 2.0]])  # close enough for the chain to move freely
    prior = NormalWishartPrior.from_data(X, mean_prior=[1.0, 2.0], covariance_prior=[[2.0, 0.5], [0.5, 1.0]], **options)
    problem = MixtureProblem.from_points(X, prior, 3)
    chain = gibbs_chain(problem, iterations=200_000, burn_in=100, seed=1)
    labels = np.array(list(product(range(3), repeat=4)))
    exact = np.array([_log_evidence(problem, z) for z in labels])
    probability = np.exp(exact - exact.max())
    probability /= probability.sum()
    codes = chain.labels[100:] @ (3 ** np.arange(3, -1, -1))
    frequency = np.bincount(codes, minlength=81) / len(codes)
    assert np.abs(frequency - probability).sum() < 0.06  # a degree of freedom more or less makes 0.13


def _log_evidence(problem: MixtureProblem, z: IntArray) -> float:
    """log p(z, y) up to a constant by sequential prediction: a Student t for every point given those before it."""
    prior, D, K = problem.prior, problem.prior.dimension, problem.n_clusters
    value = 0.0
    for i, y in enumerate(problem.data):
        before = problem.data[:i][z[:i] == z[i]]
        n, b, nu = len(before), prior.mean_precision + len(before), prior.degrees_of_freedom + len(before)
        mean = (prior.mean_precision * prior.mean + before.sum(axis=0)) / b
        scale = prior.covariance + prior.mean_precision * np.outer(prior.mean, prior.mean) + before.T @ before
        scale = scale - b * np.outer(mean, mean)
        freedom = nu - D + 1
        value += float(stats.multivariate_t(mean, scale * (b + 1) / (b * freedom), freedom).logpdf(y))
        value += float(np.log(prior.weight_concentration + n) - np.log(K * prior.weight_concentration + i))
    return value


@pytest.fixture(scope="module")
def apart() -> MixtureProblem:
    """Two clusters so far apart that the labels never change."""
    rng = np.random.default_rng(5)
    X = np.vstack([rng.normal(size=(7, 2)), 60.0 + rng.normal(size=(5, 2)) @ [[1.0, 0.4], [0.0, 0.6]]])
    options = {"mean_precision_prior": 0.3, "weight_concentration_prior": 1.4, "degrees_of_freedom_prior": 6.0}
    prior = NormalWishartPrior.from_data(X, covariance_prior=[[1.0, 0.2], [0.2, 0.7]], **options)
    return MixtureProblem.from_points(X, prior, 2)


def _posterior(problem: MixtureProblem, members: FloatArray) -> tuple[float, FloatArray, float, FloatArray]:
    """b, mean, nu and V of the normal-Wishart distribution of a cluster's mean and precision."""
    prior, n = problem.prior, len(members)
    b, centre = prior.mean_precision + n, members.mean(axis=0)
    scatter = np.cov(members.T, bias=True) * n
    shift = np.outer(centre - prior.mean, centre - prior.mean)
    V = prior.covariance + scatter + prior.mean_precision * n / b * shift
    return b, (prior.mean_precision * prior.mean + n * centre) / b, prior.degrees_of_freedom + n, V


def test_sampled_parameters_have_the_moments_of_their_conditionals(apart: MixtureProblem) -> None:
    truth = np.repeat([0, 1], [7, 5])
    # From uniformly drawn labels the chain may settle elsewhere: the first seed that finds the two clusters.
    chains = (gibbs_chain(apart, iterations=20_000, burn_in=200, seed=seed) for seed in range(20))
    chain = next(c for c in chains if (c.labels[200:] == c.labels[-1]).all() and len(set(c.labels[-1])) == 2)
    names = chain.labels[-1][[0, -1]]
    assert (names[truth] == chain.labels[-1]).all()
    draws = len(chain.labels) - 201
    weights, means, precisions = (a[201:][:, names] for a in (chain.weights, chain.means, chain.precisions))
    for k in range(2):
        members = apart.data[truth == k]
        b, mean, nu, V = _posterior(apart, members)
        share = stats.beta(1.4 + len(members), 1.4 + 12 - len(members))
        assert weights[:, k].mean() == pytest.approx(share.mean(), abs=5 * share.std() / np.sqrt(draws))
        assert weights[:, k].std() == pytest.approx(share.std(), rel=0.03)
        spread = V / (b * (nu - 3.0))  # covariance of the mean, a Student t
        assert np.abs(means[:, k].mean(axis=0) - mean).max() < 5 * np.sqrt(spread.max() / draws)
        assert np.cov(means[:, k].T) == pytest.approx(spread, rel=0.1, abs=0.03 * spread.max())
        inverse = np.linalg.inv(V)
        deviation = np.sqrt(nu * (inverse**2 + np.outer(np.diag(inverse), np.diag(inverse))))  # of a Wishart matrix
        assert (np.abs(precisions[:, k].mean(axis=0) - nu * inverse) < 5 * deviation / np.sqrt(draws)).all()
        assert precisions[:, k].std(axis=0) == pytest.approx(deviation, rel=0.05)


def test_variational_bayes_has_the_same_prior(apart: MixtureProblem) -> None:
    """Where every point has one cluster, q is the posterior given the labels."""
    run = variational_mixture(apart)
    assert run.returned.assignment is not None
    z, pi, mu, Lambda = (run.returned.assignment[name] for name in ("z", "pi", "mu", "Lambda"))
    for k in range(2):
        members = apart.data[z == k]
        _, mean, nu, V = _posterior(apart, members)
        assert pi[k] == pytest.approx((1.4 + len(members)) / (2.8 + 12), rel=1e-6)
        assert mu[k] == pytest.approx(mean, rel=1e-5)
        assert Lambda[k] == pytest.approx(nu * np.linalg.inv(V), rel=1e-5)


def test_same_seed_same_chain() -> None:
    problem = mixture(10, 3, 2)
    first, second, other = (gibbs_chain(problem, iterations=20, burn_in=5, seed=s) for s in (1, 1, 2))
    assert (first.means == second.means).all()
    assert (first.labels == second.labels).all()
    assert (first.means != other.means).any()


def test_binned_mode_by_hand() -> None:
    samples = np.array([[0.11, 3.0], [0.12, 3.0], [0.38, 3.0], [0.11, 3.0], [-0.4, 3.0]])
    # Standard deviation 0.25: the factor is 10, the integers 1, 1, 4, 1, -4.
    assert binned_mode(samples) == pytest.approx([0.1, 3.0])
    normal = np.random.default_rng(0).normal(100.0, 0.02, size=(5000, 2, 2))
    assert np.abs(binned_mode(normal) - 100.0).max() < 0.03


def test_constraints_and_weights_are_refused() -> None:
    for problem in (mixture(must_link=[(0, 2)]), mixture(cannot_link=[(0, 1)]), mixture(min_size=2)):
        with pytest.raises(ValueError, match="takes no constraints"):
            gibbs_chain(problem)
        with pytest.raises(ValueError, match="variational Bayes takes no constraints"):
            variational_mixture(problem)
    with pytest.raises(ValueError, match="takes no sample weights, got 2"):
        gibbs_chain(mixture(sample_weight=[2.0] * 8))
    with pytest.raises(ValueError, match=r"burn_in must be in 0\.\.9, got 10"):
        gibbs_chain(mixture(), iterations=10, burn_in=10)


def test_variational_bayes_says_when_it_did_not_converge() -> None:
    problem = mixture(30, 2, 3)
    assert variational_mixture(problem, n_init=1, max_iter=1).returned.stop_reason is StopReason.ITERATIONS
    assert variational_mixture(problem).returned.stop_reason is StopReason.STALLED
