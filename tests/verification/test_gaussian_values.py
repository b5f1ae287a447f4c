"""Exact enclosures of c(S) of Gaussian clusters against the closed forms in float64."""

import numpy as np
import pytest
from tests.verification.gaussian_cases import KINDS, points, prior_of

from certimap import CertificateError, Model
from certimap.mixture.factor import gaussian_clusters
from certimap.mixture.prior import COVARIANCE_TYPES, NormalWishartPrior
from certimap.verification.gaussian_values import ClusterValues, Kind

PRIORS = {
    "default": {},
    "weak mean": {"weight_concentration_prior": 2.0, "mean_precision_prior": 0.01},
    "concentrated": {"weight_concentration_prior": 4.5, "mean_precision_prior": 3.0, "degrees_of_freedom_prior": 7.3},
}


def test_kinds_are_numbered_as_in_the_factor() -> None:
    assert {kind.value: kind.name.lower() for kind in Kind} == {COVARIANCE_TYPES.index(k): k for k in KINDS}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_values_enclose_the_closed_form(kind: str, dimension: int, prior: dict[str, float], weighted: bool) -> None:
    rng = np.random.default_rng(dimension)
    X = points(rng, 9, dimension) + 3.0
    weight = rng.uniform(0.3, 3.0, size=9) if weighted else None
    factor = gaussian_clusters(
        Model().categorical("z", 3, shape=9), X, prior_of(X, kind, **prior, sample_weight=weight), sample_weight=weight
    )
    values = ClusterValues(factor.arrays(), 3)
    for chosen in (rng.random(9) < share for share in (0.0, 0.1, 0.3, 0.5, 0.8, 1.0)):
        low, high = values.value(np.flatnonzero(chosen).tolist())
        assert 0 <= high - low < 1e-25
        assert float(low) == pytest.approx(factor.cluster_value(np.flatnonzero(chosen)), rel=1e-10, abs=1e-10)


def test_a_known_covariance_is_inverted_exactly() -> None:
    """A condition of 1e12 leaves floats four digits of the precision; the trace of one far point shows them."""
    covariance = np.array([[1.0, 1.0 - 1e-12], [1.0 - 1e-12, 1.0]])
    prior = NormalWishartPrior("known", 1.0, 1.0, np.zeros(2), 2.0, covariance)
    X = np.array([[1.0, -1.0], [0.0, 0.0]])
    factor = gaussian_clusters(Model().categorical("z", 2, shape=2), X, prior)
    low, high = ClusterValues(factor.arrays(), 2).value([0])
    gap = 1.0 - covariance[0, 1]  # exact, as is 1 + covariance[0, 1] up to 1e-16
    # n log(n/N) + logdet Lambda - tr(Lambda y y')/4, and Lambda has 1/gap along y.
    expected = np.log(0.5) - np.log(gap * (2.0 - gap)) - 2.0 / gap / 4.0
    assert float(low) == pytest.approx(expected, rel=1e-14)
    assert high - low < 1e-25


def test_only_kinds_with_a_sum_over_clusters_are_known() -> None:
    X = points(np.random.default_rng(0), 4, 2)
    arrays = gaussian_clusters(Model().categorical("z", 2, shape=4), X, prior_of(X)).arrays()
    with pytest.raises(CertificateError, match="this covariance type"):
        ClusterValues({**arrays, "covariance_type": np.array(COVARIANCE_TYPES.index("tied"))}, 2)
