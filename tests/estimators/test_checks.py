"""scikit-learn's own checks; every expected failure has its reason."""

from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.estimator_checks import parametrize_with_checks

from certimap import GaussianMixtureMAP

KNOWN_CLUSTERS = (
    "the check sets n_components=1 and passes class numbers 0..2 as y; here y names known clusters, a hard constraint, "
    "and a cluster that does not exist is an error"
)
SINGULAR_DEFAULT = (
    "the check has 30 features on 15 distinct points: the default prior, the covariance of X, is singular, and an "
    "error says so"
)


class WithoutKnownClusters(GaussianMixtureMAP):
    """Ignores y as other clusterers do: shows that the failures above come from y alone, and clusters freely."""

    def fit(self, X: Any, y: Any = None, **constraints: Any) -> Self:
        return super().fit(X, None, **constraints)


def expected_failures(estimator: GaussianMixtureMAP) -> dict[str, str]:
    if isinstance(estimator, WithoutKnownClusters):
        return {}
    failures = dict.fromkeys(
        (
            "check_dont_overwrite_parameters",
            "check_fit2d_1feature",
            "check_fit2d_predict1d",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
        ),
        KNOWN_CLUSTERS,
    )
    if estimator.covariance_type in ("full", "tied"):
        failures["check_sample_weight_equivalence_on_dense_data"] = SINGULAR_DEFAULT
    return failures


@parametrize_with_checks(
    [
        GaussianMixtureMAP(4, n_init=10, random_state=0),
        GaussianMixtureMAP(4, covariance_type="tied", n_init=10, random_state=0),
        WithoutKnownClusters(3, covariance_type="diag", n_init=10, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator: GaussianMixtureMAP, check: Callable[[GaussianMixtureMAP], None]) -> None:
    check(estimator)
