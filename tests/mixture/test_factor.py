"""The Partition factor of Gaussian clusters, for every covariance type that splits over clusters."""

import numpy as np
import pytest

from certimap import Model
from certimap.mixture.clusters import Items, partition_objective
from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.factor import gaussian_clusters, mixture_model
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.record import problem_of, problem_record
from certimap.model.errors import ModelError

SEPARABLE = ("full", "diag", "spherical", "known")
X = np.random.default_rng(0).normal(size=(9, 2)) @ np.array([[1.0, 0.4], [0.0, 2.0]]) + 3.0


def _prior(covariance_type):
    known = {"covariance_prior": np.array([[0.5, 0.2], [0.2, 0.9]])} if covariance_type == "known" else {}
    return NormalWishartPrior.from_data(X, covariance_type, **known)


def _model(covariance_type):
    model = Model()
    z = model.categorical("z", 3, shape=len(X))
    model.add(gaussian_clusters(z, X, _prior(covariance_type)))
    return model


@pytest.mark.parametrize("covariance_type", SEPARABLE)
def test_value_is_that_of_the_objective(covariance_type):
    model, prior = _model(covariance_type), _prior(covariance_type)
    labels = np.array([0, 0, 2, 2, 2, 0, 0, 2, 2])
    objective = partition_objective(prior, Items.from_points(X - prior.mean), 3)
    assert model.value({"z": labels}) == pytest.approx(objective.partition_value(labels), rel=1e-12)


def test_types_have_different_fingerprints():
    assert len({_model(covariance_type).fingerprint() for covariance_type in SEPARABLE}) == len(SEPARABLE)


@pytest.mark.parametrize("covariance_type", SEPARABLE)
def test_record_gives_the_same_model_back(covariance_type):
    problem = ClusterConstraints.from_arguments(len(X), 3, must_link=[(0, 1)]).problem(X, _prior(covariance_type), 3)
    again = problem_of(problem_record(problem))
    assert mixture_model(again).fingerprint() == mixture_model(problem).fingerprint()


def test_tied_is_refused():
    with pytest.raises(ModelError, match="'full', 'diag', 'spherical' or 'known', got 'tied'"):
        _model("tied")
