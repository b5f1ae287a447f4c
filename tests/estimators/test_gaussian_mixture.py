"""GaussianMixtureMAP: parameters, constraints, fitted attributes, prediction, and life in scikit-learn."""

import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.helpers import assert_solved

from certimap import GaussianMixtureMAP, Status, StopReason, verify
from certimap.estimators.errors import NoFeasiblePointError
from certimap.mixture.prior import COVARIANCE_TYPES, CovarianceType, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem

IRIS = PCA(3, svd_solver="full").fit_transform(load_iris().data)


def blobs(seed: int = 0, n: int = 60, K: int = 3, D: int = 2) -> np.ndarray[Any, np.dtype[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) + 3.0 * rng.normal(size=(K, D))[np.arange(n) % K]


def fitted(X: np.ndarray[Any, Any], covariance_type: CovarianceType = "full", **constraints: Any) -> GaussianMixtureMAP:
    known = np.eye(X.shape[1]) if covariance_type == "known" else None
    model = GaussianMixtureMAP(
        3, covariance_type=covariance_type, covariance_prior=known, n_init=12, random_state=0, algorithm="local-search"
    )
    return model.fit(X, **constraints)


@pytest.fixture(scope="module")
def iris() -> GaussianMixtureMAP:
    return GaussianMixtureMAP(3, random_state=0, algorithm="local-search").fit(IRIS)


def test_iris(iris: GaussianMixtureMAP) -> None:
    assert iris.log_map_ == pytest.approx(73.34322978, abs=1e-8)
    assert iris.upper_bound_ >= iris.log_map_
    assert iris.gap_ == iris.upper_bound_ - iris.log_map_
    assert iris.status_ is Status.FEASIBLE
    assert iris.stop_reason_ is StopReason.ITERATIONS
    assert iris.history_[-1].incumbent == iris.log_map_
    assert iris.seed_ == 0
    problem = MixtureProblem.from_points(IRIS, NormalWishartPrior.from_data(IRIS), 3)
    assert problem.log_map(iris.labels_) == pytest.approx(iris.log_map_, rel=1e-12)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_fitted_attributes(covariance_type: CovarianceType) -> None:
    X = blobs()
    model = fitted(X, covariance_type)
    peer = GaussianMixture(3, covariance_type="tied" if covariance_type == "known" else covariance_type).fit(X)
    for name in ("weights_", "means_", "precisions_", "covariances_"):
        assert getattr(model, name).shape == getattr(peer, name).shape
    assert model.weights_.sum() == pytest.approx(1.0)
    if covariance_type in ("diag", "spherical"):
        assert_allclose(model.precisions_ * model.covariances_, 1.0)
    else:
        assert_allclose(
            model.precisions_ @ model.covariances_, np.broadcast_to(np.eye(2), model.precisions_.shape), atol=1e-9
        )
    if covariance_type == "known":
        assert_allclose(model.covariances_, np.eye(2))
    # The labels of the best clustering are the most probable ones at its parameters.
    assert_array_equal(model.predict(X), model.labels_)
    assert model.certificate_ is None


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_density(covariance_type: CovarianceType) -> None:
    X = blobs()
    model = fitted(X, covariance_type)
    covariances = {
        "full": lambda k: model.covariances_[k],
        "tied": lambda k: model.covariances_,
        "known": lambda k: model.covariances_,
        "diag": lambda k: np.diag(model.covariances_[k]),
        "spherical": lambda k: model.covariances_[k] * np.eye(2),
    }[covariance_type]
    density = np.stack(
        [
            w * multivariate_normal(m, covariances(k)).pdf(X)
            for k, (w, m) in enumerate(zip(model.weights_, model.means_, strict=True))
        ],
        axis=1,
    )
    assert_allclose(model.score_samples(X), np.log(density.sum(axis=1)))
    assert_allclose(model.predict_proba(X), density / density.sum(axis=1, keepdims=True), atol=1e-12)
    assert model.score(X) == pytest.approx(np.log(density.sum(axis=1)).mean())


def test_hard_constraints() -> None:
    X = blobs()
    y = np.full(60, -1)
    y[[0, 30]] = [2, 0]
    links: dict[str, Any] = {"must_link": [(0, 4), (4, 8)], "cannot_link": np.array([[0, 3], [1, 2]])}
    model = fitted(X, y=y, min_cluster_size=18, max_cluster_size=22, **links)
    z = model.labels_
    assert z[0] == z[4] == z[8] == 2
    assert z[30] == 0
    assert z[0] != z[3]
    assert z[1] != z[2]
    sizes = np.bincount(z, minlength=3)
    assert sizes.min() >= 18
    assert sizes.max() <= 22
    checks = model.constraints_.checks(z, 3)
    assert len(checks) == 7
    assert all(check.hard and check.satisfied for check in checks)
    assert model.log_map_ <= fitted(X).log_map_


def test_the_certificate_is_about_the_model() -> None:
    X = blobs(n=15)
    model = GaussianMixtureMAP(3, random_state=0).fit(X, must_link=[(0, 3, 0.4), (0, 6)], cannot_link=[(1, 2)])
    report = assert_solved(model.model(), model.result_, status=Status.OPTIMAL)
    assert report is not None and report.upper_bound >= model.log_map_


def test_soft_links_cost_their_weight() -> None:
    X = blobs()
    free = fitted(X)
    apart = next(i for i in range(60) if free.labels_[i] != free.labels_[0])
    cheap = fitted(X, must_link=[(0, apart, 0.25)])
    assert cheap.log_map_ == pytest.approx(free.log_map_ - 0.25)
    (check,) = cheap.constraints_.checks(cheap.labels_, 3)
    assert (check.hard, check.satisfied, check.cost) == (False, False, 0.25)
    dear = fitted(X, must_link=np.array([[0, apart, 1e4]]))
    assert dear.labels_[0] == dear.labels_[apart]
    problem = dear.constraints_.problem(X, dear.prior_, 3)
    assert dear.log_map_ == pytest.approx(problem.objective.partition_value(dear.labels_))
    separated = fitted(X, cannot_link=[(0, np.flatnonzero(free.labels_ == free.labels_[0])[1], 1e4)])
    assert separated.log_map_ < free.log_map_


def test_sample_weights_count_points() -> None:
    X = blobs(n=30)
    weight = np.arange(30) % 3 + 1
    assert fitted(X, sample_weight=weight).log_map_ == pytest.approx(fitted(np.repeat(X, weight, axis=0)).log_map_)


def test_all_labels_known() -> None:
    X, y = blobs(), np.arange(60) % 3
    model = fitted(X, y=y.astype(float))
    assert_array_equal(model.labels_, y)
    assert_array_equal(GaussianMixtureMAP(3, n_init=1, algorithm="local-search").fit_predict(X, y), y)


def test_empty_clusters_have_the_prior_parameters() -> None:
    X = np.random.default_rng(0).normal(size=(12, 1))
    model = fitted(X, y=np.zeros(12, dtype=int))
    assert_array_equal(model.weights_, [1.0, 0.0, 0.0])
    assert_allclose(model.means_[1], X.mean(axis=0))
    assert_array_equal(model.predict(X), 0)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}, "tied by the must-links 0 - 1 - 2"),
        ({"must_link": [(0, 60)]}, r"must_link must name points by their row, 0..59, got (0, 60)"),
        ({"must_link": [(0.5, 1)]}, "must_link must name points by their row"),
        ({"must_link": [(0, 1, 2, 3)]}, "must_link must hold pairs (i, j) or (i, j, weight)"),
        ({"cannot_link": [7]}, "cannot_link must hold pairs (i, j) or (i, j, weight)"),
        ({"cannot_link": [(4, 4)]}, "cannot_link must hold pairs of different points"),
        ({"cannot_link": [(4, 5, -1.0)]}, "cannot_link must have finite weights >= 0"),
        ({"min_cluster_size": 21}, "min_cluster_size must be at most 20, got 21: 3 clusters share 60 points"),
        ({"max_cluster_size": 19}, "max_cluster_size must be at least 20, got 19"),
        ({"min_cluster_size": 5.0}, "min_cluster_size must be None or an integer >= 0, got 5.0"),
        ({"y": np.full(60, 3)}, "y must hold known clusters 0..2, -1 where unknown, got 3..3"),
        ({"y": ["a"] * 60}, "Unknown label type: <U1"),
        ({"y": [0, 1]}, "y must have one entry per point, shape (60,), got (2,)"),
        ({"sample_weight": np.ones(3)}, "sample_weight must have one entry per point"),
    ],
)
def test_wrong_fit_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^GaussianMixtureMAP\.fit: .*" + re.escape(message)):
        fitted(blobs(), **arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"n_components": 2.0}, "n_components must be an integer >= 1, got 2.0"),
        ({"covariance_type": "banded"}, "covariance_type must be one of full, tied, diag, spherical, known"),
        ({"covariance_type": "known"}, "covariance_prior must be given when covariance_type is 'known'"),
        ({"weight_concentration_prior": 0.5}, "weight_concentration_prior must be a finite number >= 1, got 0.5"),
        ({"mean_precision_prior": "1"}, "mean_precision_prior must be a number, got '1'"),
        ({"degrees_of_freedom_prior": 1.0}, "degrees_of_freedom_prior must be a finite number >= 2, got 1.0"),
        ({"mean_prior": [0.0]}, "mean_prior must be finite, one entry per feature, shape (2,)"),
        ({"tol": -1.0}, "tol must be a finite number >= 0, got -1.0"),
        ({"max_nodes": 0}, "max_nodes must be an integer >= 1 or None, got 0"),
        ({"time_limit": -1.0}, "time_limit must be positive or None, got -1.0"),
        ({"n_init": 0}, "n_init must be an integer >= 1, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer, got 0"),
        ({"algorithm": "magic"}, "algorithm must be one of auto, local-search, got 'magic'"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    model = GaussianMixtureMAP(**{"n_components": 3, **parameters})
    with pytest.raises(ValueError, match=r"^GaussianMixtureMAP\.fit: " + re.escape(message)):
        model.fit(blobs())


def test_wrong_data() -> None:
    with pytest.raises(ValueError, match=r"Reshape your data"):
        GaussianMixtureMAP(2).fit(np.arange(5.0))
    with pytest.raises(ValueError, match=r"minimum of 2 is required by GaussianMixtureMAP"):
        GaussianMixtureMAP(2).fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"feature\(s\) 1 of X left out"):
        GaussianMixtureMAP(2).fit([[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]])
    with pytest.raises(NotFittedError):
        GaussianMixtureMAP(2).predict(blobs())
    one = GaussianMixtureMAP(2, covariance_prior=np.eye(2)).fit([[1.0, 2.0]])
    assert_array_equal(one.labels_, [0])


def test_infeasible_constraints_are_named() -> None:
    triangle = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3), (5, 6), (6, 7)]
    with pytest.raises(NoFeasiblePointError, match="no clustering satisfies the constraints") as caught:
        fitted(blobs(), cannot_link=triangle)
    result = caught.value.result
    assert result.status is Status.INFEASIBLE
    assert result.stop_reason is StopReason.EXHAUSTED
    assert set(result.conflict) == {
        f"cannot_link ({i}, {j})" for i, j in [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)]
    }
    assert "cannot_link (0, 1)" in str(caught.value)


def test_pandas_and_float32() -> None:
    X = blobs()
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = fitted(frame)
    assert_array_equal(model.feature_names_in_, ["width", "height"])
    assert model.n_features_in_ == 2
    assert_array_equal(model.predict(frame), model.labels_)
    single = fitted(X.astype(np.float32))
    assert_array_equal(single.labels_, model.labels_)
    assert single.means_.dtype == np.float64


def test_clone_pickle_pipeline() -> None:
    X = blobs()
    model = fitted(X)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.labels_)
    assert again.status_ is model.status_
    assert not hasattr(clone(model), "labels_")
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, gaussianmixturemap__min_cluster_size=10)
    assert np.bincount(pipeline.predict(X)).min() >= 9
    assert_array_equal(pipeline.fit_predict(X, gaussianmixturemap__cannot_link=[(0, 1)]), pipeline[-1].labels_)


def test_same_seed_same_answer(iris: GaussianMixtureMAP) -> None:
    again = clone(iris).set_params(n_jobs=2).fit(IRIS)
    assert_array_equal(again.labels_, iris.labels_)
    assert [r.incumbent for r in again.history_] == [r.incumbent for r in iris.history_]
    states = [GaussianMixtureMAP(2, n_init=1, random_state=np.random.RandomState(5)).fit(blobs()) for _ in range(2)]
    assert states[0].seed_ == states[1].seed_


def test_verbose_prints_the_log_table(capsys: pytest.CaptureFixture[str]) -> None:
    model = GaussianMixtureMAP(3, n_init=3, random_state=0, algorithm="local-search")
    model.fit(blobs(), must_link=[(0, 3)])
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit(blobs(), must_link=[(0, 3)])
    shown = capsys.readouterr().out
    assert "mixture  N=60 D=2 K=3  full covariance | 1 must-link | gap target 0.10 %  seed 0" in shown
    assert "status      FEASIBLE  no finite upper bound" in shown


def test_ranking() -> None:
    X = blobs(1, n=20, K=2, D=1)
    model = GaussianMixtureMAP(2, n_init=4, random_state=0, n_top=3).fit(X, must_link=[(0, 2)])
    ranking = model.top_partitions_
    assert ranking is not None
    assert len(ranking) == 3
    assert ranking.complete
    assert ranking[0].log_map == model.log_map_
    assert_array_equal(ranking[0].labels, model.labels_)
    assert ranking[1].labels[0] == ranking[1].labels[2]
    report = verify(model.certificate_, model.model())
    assert report.ranking is not None
    assert report.ranking.values == pytest.approx([entry.log_map for entry in ranking])
    assert model.set_params(n_top=1).fit(X).top_partitions_ is None
    with pytest.raises(ValueError, match="n_top must be an integer >= 1, got 0"):
        model.set_params(n_top=0).fit(X)


def test_html_badge() -> None:
    model = fitted(blobs())
    assert "FEASIBLE · no upper bound" in model._repr_html_()
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"].startswith('<span class="certimap-badge"')
    assert "certimap-badge" not in clone(model)._repr_html_()
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()
