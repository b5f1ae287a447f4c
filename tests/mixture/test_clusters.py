"""Closed forms of the mixture against the factor terms they come from."""

import numpy as np
import pytest
from scipy.special import xlogy

from certimap.mixture.clusters import (
    FreePrecisionClusters,
    Items,
    MixtureParameters,
    SeparableObjective,
    Statistics,
    TiedClusters,
    partition_objective,
)
from certimap.mixture.prior import COVARIANCE_TYPES, NormalWishartPrior

K = 3


def _prior(X, covariance_type, **changes):
    if covariance_type == "known":
        changes.setdefault("covariance_prior", np.cov(X.T) * 0.3)
    return NormalWishartPrior.from_data(X, covariance_type, **changes)


def _data(rng, n=14, d=3):
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * 5.0


def _factor_terms(X, weight, labels, prior, parameters):
    """The singleton, A, B, C and D factors added up one by one; a shared Lambda has one Wishart factor."""
    a0, b0, m0, nu0 = prior.weight_concentration, prior.mean_precision, prior.mean, prior.degrees_of_freedom
    D = X.shape[1]
    total = 0.0
    wishart_factors = {"known": 0, "tied": 1}.get(prior.covariance_type, K)
    for k in range(K):
        pi, mu, Lambda = parameters.weights[k], parameters.means[k], parameters.precisions[k]
        log_determinant = np.linalg.slogdet(Lambda)[1]
        total += xlogy(a0 - 1.0, pi)
        total += 0.5 * (D * np.log(b0) + log_determinant) - 0.5 * b0 * m0 @ Lambda @ m0
        if k < wishart_factors:
            total += 0.5 * (nu0 - D - 1.0) * log_determinant - 0.5 * np.trace(prior.covariance @ Lambda)
        total += -0.5 * b0 * mu @ Lambda @ mu + b0 * mu @ Lambda @ m0
        for w, y in zip(weight[labels == k], X[labels == k], strict=True):
            total += w * 0.5 * (log_determinant - y @ Lambda @ y)
            total += w * (mu @ Lambda @ y - 0.5 * mu @ Lambda @ mu)
            total += xlogy(w, pi)
    return total


def _perturbed(rng, parameters, covariance_type, size):
    weights = parameters.weights * np.exp(size * rng.normal(size=K))
    means = parameters.means + size * rng.normal(size=parameters.means.shape)
    D = means.shape[1]
    precisions = []
    for k in range(K):
        if k and covariance_type == "tied":
            precisions.append(precisions[0])
            continue
        if covariance_type == "known":
            factor = np.eye(D)
        elif covariance_type == "spherical":
            factor = np.eye(D) * np.exp(size * rng.normal())
        elif covariance_type == "diag":
            factor = np.diag(np.exp(size * rng.normal(size=D)))
        else:
            factor = np.eye(D) + size * rng.normal(size=(D, D))
        precisions.append(factor @ parameters.precisions[k] @ factor.T)
    return MixtureParameters(weights / weights.sum(), means, np.array(precisions))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("a0", [1.0, 1.7])
def test_value_equals_factor_terms_at_their_maximum(covariance_type, a0):
    rng = np.random.default_rng(3)
    X = _data(rng)
    changes = {} if covariance_type == "known" else {"degrees_of_freedom_prior": 5.5}
    prior = _prior(
        X,
        covariance_type,
        weight_concentration_prior=a0,
        mean_precision_prior=0.3,
        mean_prior=X[0],
        **changes,
    )
    weight = rng.uniform(0.2, 3.0, size=len(X))
    labels = rng.integers(K, size=len(X))
    objective = partition_objective(prior, Items.from_points(X - prior.mean, weight), K)
    parameters = objective.parameters(labels)
    value = objective.partition_value(labels)
    assert value == pytest.approx(_factor_terms(X, weight, labels, prior, parameters), abs=1e-9)
    assert parameters.weights.sum() == pytest.approx(1.0)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(20):
            other = _perturbed(rng, parameters, covariance_type, size)
            assert _factor_terms(X, weight, labels, prior, other) < value


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_empty_clusters_count(covariance_type):
    rng = np.random.default_rng(4)
    X = _data(rng)
    prior = _prior(X, covariance_type, weight_concentration_prior=1.5)
    labels = np.where(np.arange(len(X)) < 6, 0, 2)
    objective = partition_objective(prior, Items.from_points(X - prior.mean), K)
    parameters = objective.parameters(labels)
    expected = _factor_terms(X, np.ones(len(X)), labels, prior, parameters)
    assert objective.partition_value(labels) == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(parameters.means[1], prior.mean)


def test_empty_cluster_at_the_least_degrees_of_freedom():
    X = _data(np.random.default_rng(5))
    prior = _prior(X, "full", degrees_of_freedom_prior=3.0, mean_precision_prior=2.0)
    objective = partition_objective(prior, Items.from_points(X - prior.mean), K)
    assert isinstance(objective, FreePrecisionClusters)
    assert objective.value([]) == pytest.approx(1.5 * np.log(2.0))


def test_full_formula_from_sums():
    X = _data(np.random.default_rng(6))
    prior = _prior(X, "full", mean_precision_prior=0.5)
    objective = partition_objective(prior, Items.from_points(X - prior.mean), K)
    assert isinstance(objective, SeparableObjective)
    Y = X[:5] - prior.mean
    n, s, Q = 5.0, Y.sum(axis=0), Y.T @ Y
    b0, nu = 0.5, 2.0 + n
    M = prior.covariance + Q - np.outer(s, s) / (b0 + n)
    expected = n * np.log(n / 14) + 1.5 * np.log(b0) + 1.5 * nu * (np.log(nu) - 1) - nu / 2 * np.linalg.slogdet(M)[1]
    assert objective.value_of_statistics(Statistics.from_sums(n, s, Q)) == pytest.approx(expected)
    assert objective.value(range(5)) == pytest.approx(expected)
    assert objective.value(np.arange(14) < 5) == pytest.approx(expected)


def test_diag_is_the_full_formula_feature_by_feature():
    X = _data(np.random.default_rng(7))
    prior = _prior(X, "diag")
    labels = np.arange(len(X)) % K
    whole = partition_objective(prior, Items.from_points(X - prior.mean), K).partition_value(labels)
    weight_term = sum(xlogy(n, n / len(X)) for n in np.bincount(labels))
    parts = 0.0
    for d in range(X.shape[1]):
        single = _prior(X[:, [d]], "full")
        items = Items.from_points(X[:, [d]] - single.mean)
        parts += partition_objective(single, items, K).partition_value(labels) - weight_term
    assert whole == pytest.approx(parts + weight_term)


def test_restricted_types_are_nested_and_meet_in_one_dimension():
    rng = np.random.default_rng(8)
    X = _data(rng)
    labels = rng.integers(K, size=len(X))

    def value(data, covariance_type):
        # One prior for all types, so that only the admitted precisions differ.
        prior = _prior(data, covariance_type, covariance_prior=np.eye(data.shape[1]) * 2.0)
        return partition_objective(prior, Items.from_points(data - prior.mean), K).partition_value(labels)

    assert value(X, "spherical") < value(X, "diag") < value(X, "full")
    assert value(X[:, :1], "spherical") == pytest.approx(value(X[:, :1], "full"))
    assert value(X[:, :1], "diag") == pytest.approx(value(X[:, :1], "full"))


def test_tied_is_the_maximum_over_the_shared_precision():
    rng = np.random.default_rng(9)
    X = _data(rng)
    prior = _prior(X, "tied")
    labels = rng.integers(K, size=len(X))
    objective = partition_objective(prior, Items.from_points(X - prior.mean), K)
    assert isinstance(objective, TiedClusters)
    best = objective.parameters(labels).precisions[0]

    def split(precision):
        return objective.shared_term(precision) + objective.at_precision(precision).partition_value(labels)

    assert split(best) == pytest.approx(objective.partition_value(labels))
    for _ in range(20):
        factor = np.eye(3) + 0.1 * rng.normal(size=(3, 3))
        assert split(factor @ best @ factor.T) < split(best)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_weights_count_repetitions_and_groups_add_up(covariance_type):
    rng = np.random.default_rng(10)
    X = _data(rng)
    times = rng.integers(0, 4, size=len(X))
    labels = rng.integers(K, size=len(X))
    prior = _prior(X, covariance_type, sample_weight=times)
    repeated = _prior(np.repeat(X, times, axis=0), covariance_type, mean_prior=prior.mean)
    if covariance_type != "known":
        np.testing.assert_allclose(prior.covariance, repeated.covariance)
    weighted = partition_objective(prior, Items.from_points(X - prior.mean, times), K).partition_value(labels)
    long = partition_objective(prior, Items.from_points(np.repeat(X, times, axis=0) - prior.mean), K)
    assert weighted == pytest.approx(long.partition_value(np.repeat(labels, times)))
    point_item = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 7, 7, 8])
    item_labels = rng.integers(K, size=9)
    grouped = partition_objective(prior, Items.from_points(X - prior.mean, times, point_item), K)
    single = partition_objective(prior, Items.from_points(X - prior.mean, times), K)
    assert grouped.partition_value(item_labels) == pytest.approx(single.partition_value(item_labels[point_item]))


def test_labels_are_checked():
    X = _data(np.random.default_rng(11))
    prior = _prior(X, "full")
    objective = partition_objective(prior, Items.from_points(X - prior.mean), K)
    with pytest.raises(ValueError, match=r"one entry per item, shape \(14,\), got \(3,\)"):
        objective.partition_value([0, 1, 2])
    with pytest.raises(ValueError, match=r"labels must be in 0\.\.2, got 0\.\.3"):
        objective.partition_value([3] + [0] * 13)


def test_defaults():
    X = _data(np.random.default_rng(12))
    prior = NormalWishartPrior.from_data(X)
    assert (prior.weight_concentration, prior.mean_precision, prior.degrees_of_freedom) == (1.0, 1.0, 5.0)
    np.testing.assert_allclose(prior.mean, X.mean(axis=0))
    np.testing.assert_allclose(prior.covariance, np.cov(X.T))
    with pytest.raises(ValueError, match="read-only"):
        prior.mean[0] = 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight_concentration_prior": 0.5}, "weight_concentration_prior must be .* >= 1, got 0.5: below 1"),
        ({"weight_concentration_prior": np.nan}, "weight_concentration_prior must be a finite"),
        ({"mean_precision_prior": 0.0}, "mean_precision_prior must be a finite number > 0, got 0.0: at 0"),
        (
            {"degrees_of_freedom_prior": 2.5},
            "degrees_of_freedom_prior must be .* >= 3, got 2.5: below the dim",
        ),
        ({"mean_prior": [0.0, 1.0]}, r"mean_prior must be finite, one entry per feature, shape \(3,\)"),
        ({"covariance_prior": np.eye(2)}, r"covariance_prior must be a finite matrix of shape \(3, 3\)"),
        ({"covariance_prior": np.diag([1.0, 1.0, 0.0])}, "covariance_prior must be positive definite"),
        ({"covariance_prior": np.ones((3, 3))}, "covariance_prior must be positive definite"),
        ({"covariance_prior": np.triu(np.ones((3, 3))) + np.eye(3)}, "covariance_prior must be symmetric"),
        (
            {"covariance_type": "round"},
            "covariance_type must be one of full, tied, diag, spherical, known, got",
        ),
        ({"covariance_type": "known"}, "covariance_prior must be given when covariance_type is 'known'"),
        (
            {"covariance_type": "known", "covariance_prior": np.eye(3), "degrees_of_freedom_prior": 5.0},
            "degrees_of_freedom_prior must be None, got 5.0: a known",
        ),
        ({"sample_weight": [1.0]}, r"sample_weight must have one entry per point, shape \(14,\)"),
        ({"sample_weight": -np.ones(14)}, "sample_weight must be finite and >= 0"),
        ({"sample_weight": np.zeros(14)}, "sample_weight must not be zero everywhere"),
    ],
)
def test_prior_errors_name_the_parameter_and_the_reason(changes, message):
    X = _data(np.random.default_rng(13))
    with pytest.raises(ValueError, match=message):
        NormalWishartPrior.from_data(X, **changes)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((1, 2)), r"covariance_prior must be given for a total of 1 point\(s\)"),
        (
            np.array([[1.0, 0.1], [2.0, 0.1], [5.0, 0.1]]),
            r"feature\(s\) 1 of X left out, got None: they are constant",
        ),
        (np.array([[1.0, 2.0], [2.0, 4.0], [5.0, 10.0]]), "linearly dependent"),
        (np.array([[1.0, np.nan]]), "X must be finite"),
        (np.ones(3), r"X must be a non-empty array of shape \(points, features\), got shape \(3,\)"),
    ],
)
def test_data_without_a_default_covariance(X, message):
    with pytest.raises(ValueError, match=message):
        NormalWishartPrior.from_data(X)


def test_a_given_covariance_serves_a_single_point():
    prior = NormalWishartPrior.from_data(np.ones((1, 2)), covariance_prior=np.eye(2))
    np.testing.assert_allclose(prior.mean, 1.0)
    scalar = NormalWishartPrior.from_data(np.ones((1, 2)), "spherical", covariance_prior=2.0)
    np.testing.assert_allclose(scalar.covariance, 2.0 * np.eye(2))
    vector = NormalWishartPrior.from_data(np.ones((1, 2)), "diag", covariance_prior=[1.0, 3.0])
    np.testing.assert_allclose(vector.covariance, np.diag([1.0, 3.0]))
