"""scikit-learn's own checks; every expected failure has its reason."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from certimap import GaussianMixtureMAP, LatentDirichletMAP

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


FRACTIONS = "the check passes real numbers as counts; here counts are whole numbers of tokens, and others are an error"


class OfWholeNumbers(LatentDirichletMAP):
    """Rounds counts down: shows that the failures of LatentDirichletMAP come from fractions alone."""

    def fit(self, X: Any, y: Any = None, **constraints: Any) -> Self:
        return super().fit(whole(X), y, **constraints)

    def transform(self, X: Any) -> Any:
        return super().transform(whole(X))

    def score(self, X: Any, y: Any = None) -> float:
        return super().score(whole(X), y)


def whole(X: Any) -> Any:
    if issparse(X):
        return X.tocsr().floor().asformat(X.format)
    if hasattr(X, "iloc"):
        return np.floor(X)
    array = np.asarray(X)
    if array.dtype.kind == "O" and all(isinstance(entry, float) for entry in array.ravel()):
        array = array.astype(float)
    return np.floor(array) if array.dtype.kind == "f" else X


def failures_by_fractions(estimator: LatentDirichletMAP) -> dict[str, str]:
    if isinstance(estimator, OfWholeNumbers):
        return {}
    return dict.fromkeys(
        (
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_estimator_sparse_array",
            "check_estimator_sparse_matrix",
            "check_estimator_sparse_tag",
            "check_estimators_dtypes",
            "check_estimators_fit_returns_self",
            "check_estimators_nan_inf",
            "check_estimators_overwrite_params",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_1sample",
            "check_fit2d_predict1d",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_fit_score_takes_y",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_pipeline_consistency",
            "check_readonly_memmap_input",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
        ),
        FRACTIONS,
    )


@parametrize_with_checks(
    [
        LatentDirichletMAP(2, n_init=3, random_state=0, algorithm="local-search"),
        OfWholeNumbers(2, n_init=3, random_state=0, algorithm="local-search"),
    ],
    expected_failed_checks=failures_by_fractions,
)
def test_scikit_learn_checks_of_topics(
    estimator: LatentDirichletMAP, check: Callable[[LatentDirichletMAP], None]
) -> None:
    check(estimator)
