"""Certified pricing against enumeration of all subsets."""

import itertools
import math

import numpy as np
import pytest

from certimap.mixture.clusters import Items, partition_objective
from certimap.mixture.kernel.whitening import FORMS
from certimap.mixture.pricing import (
    Budget,
    PricingStatus,
    certify,
    cluster_axes,
    enumerate_columns,
    whiten,
)
from certimap.mixture.prior import NormalWishartPrior

# a0, b0, v
PRIORS = {"default": (1.0, 1.0, 2.0), "weak mean": (2.0, 0.01, 2.0), "flat": (1.0, 1.0, 0.0)}


class Case:
    """A small problem, prices, and the values of all admissible sets."""

    def __init__(self, X, prior, prices, *, kind="full", groups=None, sample_weight=None, rotation=None, **limits):
        a0, b0, v = prior
        known = kind == "known"
        self.prior = NormalWishartPrior.from_data(
            X,
            kind,
            weight_concentration_prior=a0,
            mean_precision_prior=b0,
            degrees_of_freedom_prior=None if known else X.shape[1] + v,
            covariance_prior=np.atleast_2d(np.cov(X.T)) / 3.0 if known else None,
            sample_weight=sample_weight,
        )
        items = Items.from_points(X - self.prior.mean, sample_weight, groups)
        count = len(items)
        self.prices = prices[:count]
        total = items.total_weight + 3 * (a0 - 1.0)
        self.problem = whiten(items, self.prior, total, rotation=rotation, **limits)
        objective = partition_objective(self.prior, items, 3)
        sets = np.array(list(itertools.product((False, True), repeat=count)))
        sizes = sets @ items.weight
        admissible = (sizes >= self.problem.min_size) & (sizes <= self.problem.max_size)
        for i, j in self.problem.conflicts:
            admissible &= ~(sets[:, i] & sets[:, j])
        self.sets = sets[admissible]
        self.values = np.array(
            [objective.value_of_statistics(items.statistics(s)) - self.prices[s].sum() for s in self.sets]
        )
        self.best = self.values.max()

    def check(self, slacks=(0.2, 1.0), budget=None):
        certified = certify(self.problem, self.prices, self.best + 1e-6, budget=budget)
        assert certified.status is PricingStatus.CERTIFIED
        assert self.best - 1e-9 <= certified.bound <= self.best + 1e-6 + 1e-9
        violated = certify(self.problem, self.prices, self.best - 1e-3, budget=budget)
        assert violated.status is PricingStatus.VIOLATED
        assert violated.bound >= self.best - 1e-9
        assert violated.columns[0].reduced > self.best - 1e-3
        self.check_values(violated.columns)
        for slack in slacks:
            listed = enumerate_columns(self.problem, self.prices, self.best + 1e-6, slack, budget=budget)
            assert listed.status is PricingStatus.CERTIFIED
            expected = {tuple(np.flatnonzero(s)) for s in self.sets[self.values >= self.best + 1e-6 - slack]}
            assert {tuple(c.members) for c in listed.columns} == expected
            assert len(listed.columns) == len(expected)
            self.check_values(listed.columns)

    def check_values(self, columns):
        for column in columns:
            (row,) = np.flatnonzero((self.sets == np.isin(np.arange(self.sets.shape[1]), column.members)).all(axis=1))
            assert column.reduced == pytest.approx(self.values[row], abs=1e-9)


def _data(rng, n, d):
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[: n // 2] += 2.0 * rng.normal(size=d)
    return X


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kind", FORMS)
def test_all_subsets(kind, dimension, prior):
    rng = np.random.default_rng(dimension)
    for points in (8, 10):
        X = _data(rng, points, dimension)
        Case(X, prior, rng.normal(size=points) + rng.uniform(-2.0, 2.0), kind=kind).check()


def test_twelve_points():
    rng = np.random.default_rng(12)
    Case(_data(rng, 12, 2), PRIORS["default"], rng.normal(size=12)).check()


@pytest.mark.parametrize("kind", FORMS)
def test_four_features(kind):
    rng = np.random.default_rng(4)
    Case(_data(rng, 6, 4), PRIORS["default"], rng.normal(size=6), kind=kind).check(slacks=(0.2,))


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("kind", FORMS)
def test_groups(kind, prior):
    rng = np.random.default_rng(5)
    groups = np.array([0, 1, 1, 1, 2, 3, 3, 4, 5, 6, 7, 7])
    for _ in range(3):
        Case(_data(rng, 12, 2), prior, rng.normal(size=12) * 2.0 - 1.0, groups=groups, kind=kind).check()


@pytest.mark.parametrize("kind", FORMS)
def test_sample_weights(kind):
    rng = np.random.default_rng(6)
    for weights in (rng.integers(1, 4, size=8).astype(float), rng.uniform(0.2, 3.0, size=8)):
        Case(
            _data(rng, 8, 2), PRIORS["default"], weights * rng.normal(size=8), sample_weight=weights, kind=kind
        ).check()


@pytest.mark.parametrize(
    "limits",
    [{"min_size": 1}, {"min_size": 4}, {"max_size": 3}, {"min_size": 3, "max_size": 3}, {"min_size": 2, "max_size": 9}],
)
@pytest.mark.parametrize("level", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("kind", FORMS)
def test_size_limits(kind, limits, level):
    rng = np.random.default_rng(7)
    X, noise = _data(rng, 9, 2), rng.normal(size=9)
    Case(X, PRIORS["default"], noise + level, kind=kind, **limits).check(slacks=(0.3,))


@pytest.mark.parametrize("limits", [{"min_size": 4}, {"max_size": 4}])
def test_size_limits_of_groups(limits):
    rng = np.random.default_rng(8)
    groups = np.array([0, 1, 1, 2, 3, 3, 3, 4, 5, 6])
    for level in (-3.0, 3.0):
        prices = rng.normal(size=10) + level
        Case(_data(rng, 10, 2), PRIORS["default"], prices, groups=groups, **limits).check(slacks=(0.3,))


@pytest.mark.parametrize("kind", FORMS)
def test_conflicts(kind):
    rng = np.random.default_rng(9)
    conflicts = [(0, 1), (1, 2), (4, 8), (3, 7)]
    for level in (-3.0, 0.0):
        Case(_data(rng, 9, 2), PRIORS["default"], rng.normal(size=9) + level, kind=kind, conflicts=conflicts).check()


@pytest.mark.parametrize("kind", ["full", "spherical", "known"])
def test_rotation_changes_nothing_but_the_boxes(kind):
    rng = np.random.default_rng(10)
    X, prices = _data(rng, 9, 3), rng.normal(size=9)
    prior = NormalWishartPrior.from_data(X)
    axes = cluster_axes(Items.from_points(X - prior.mean), prior, np.arange(9) < 4)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    Case(X, PRIORS["default"], prices, kind=kind, rotation=axes).check()


ADVERSARIAL = {
    "far outlier": lambda X: np.vstack([X[:-1], 1e6 * np.ones(X.shape[1])]),
    "near duplicates": lambda X: X[np.arange(len(X)) % 3] + 1e-9 * X,
    "duplicates": lambda X: X[np.arange(len(X)) % 4],
    "large scale": lambda X: 1e6 * X,
    "small scale": lambda X: 1e-6 * X,
    "mixed scales": lambda X: X * np.array([1e6, 1e-6]),
    "shifted": lambda X: X + 1e6,
}


@pytest.mark.parametrize("change", ADVERSARIAL.values(), ids=ADVERSARIAL)
@pytest.mark.parametrize("kind", FORMS)
def test_adversarial_data(kind, change):
    rng = np.random.default_rng(11)
    for _ in range(3):
        Case(change(_data(rng, 8, 2)), PRIORS["default"], rng.normal(size=8), kind=kind).check(slacks=(0.3,))


def test_far_outlier_with_a_narrow_prior():
    """Whitened coordinates of 1e6: the rounding margin must absorb what cancels."""
    rng = np.random.default_rng(12)
    X = _data(rng, 8, 2)
    X[3] = 1e6
    prior = NormalWishartPrior.from_data(X, mean_prior=np.zeros(2), covariance_prior=np.eye(2))
    items = Items.from_points(X)
    problem = whiten(items, prior, 8.0)
    prices = rng.normal(size=8)
    objective = partition_objective(prior, items, 1)
    best = max(
        objective.value_of_statistics(items.statistics(np.array(s))) - prices[np.array(s)].sum()
        for s in itertools.product((False, True), repeat=8)
    )
    verdict = certify(problem, prices, best - 1e-3, budget=Budget(max_nodes=20_000))
    assert verdict.bound >= best - 1e-6
    verdict = certify(problem, prices, best + 1.0, budget=Budget(max_nodes=20_000))
    assert verdict.status is PricingStatus.CERTIFIED


@pytest.mark.parametrize("nodes", [1, 2, 7, 30, 100, 300, 1000])
@pytest.mark.parametrize("kind", FORMS)
def test_bound_holds_at_any_stop_and_the_rest_can_be_resumed(kind, nodes):
    rng = np.random.default_rng(13)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10), kind=kind)
    stopped = certify(case.problem, case.prices, case.best + 1e-6, budget=Budget(max_nodes=nodes, record_boxes=8))
    assert stopped.bound >= case.best
    if stopped.status is PricingStatus.CERTIFIED:
        return
    assert stopped.status is PricingStatus.NODE_LIMIT
    assert len(stopped.open) > 0
    resumed = certify(case.problem, case.prices, case.best + 1e-6, boxes=stopped.open)
    assert resumed.status is PricingStatus.CERTIFIED


def test_time_limit_gives_a_bound():
    rng = np.random.default_rng(14)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    stopped = certify(case.problem, case.prices, case.best + 1e-6, budget=Budget(time_limit=0.0))
    assert stopped.status is PricingStatus.TIME_LIMIT
    assert stopped.bound >= case.best


@pytest.mark.parametrize("offset", [1e-6, -0.5])
@pytest.mark.parametrize("max_nodes", [None, 2000])
def test_any_number_of_threads_gives_the_same_verdict(offset, max_nodes):
    rng = np.random.default_rng(15)
    X = _data(rng, 24, 2)
    prior = NormalWishartPrior.from_data(X)
    problem = whiten(Items.from_points(X - prior.mean), prior, 24.0)
    prices = rng.normal(size=24) * 0.1 - 1.0
    target = certify(problem, prices, -math.inf, budget=Budget(max_nodes=1)).columns[0].reduced + offset
    runs = [
        certify(problem, prices, target, budget=Budget(max_nodes=max_nodes, n_threads=threads, record_boxes=16))
        for threads in (1, 2)
    ]
    for run in runs:
        assert run.status is runs[0].status
        assert run.bound == runs[0].bound
        assert run.nodes == runs[0].nodes
        assert [c.members.tolist() for c in run.columns] == [c.members.tolist() for c in runs[0].columns]
        np.testing.assert_array_equal(run.record.nodes, runs[0].record.nodes)
        np.testing.assert_array_equal(run.open.lo, runs[0].open.lo)


def test_record_adds_up():
    rng = np.random.default_rng(16)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    verdict = certify(case.problem, case.prices, case.best + 1e-6, budget=Budget(record_boxes=32))
    record = verdict.record
    assert record.nodes.sum() == verdict.nodes
    split = np.flatnonzero(record.coordinate > -2)
    children = np.bincount(record.parent[record.parent >= 0], minlength=len(record.parent))
    assert (children[split] == 2).all()
    assert children.sum() == 2 * len(split)
    assert (record.parent == -1).sum() == len(record.roots)


def test_column_limit():
    rng = np.random.default_rng(17)
    case = Case(_data(rng, 9, 2), PRIORS["default"], rng.normal(size=9))
    listed = enumerate_columns(case.problem, case.prices, case.best + 1e-6, 5.0, budget=Budget(max_columns=3))
    assert listed.status is PricingStatus.COLUMN_LIMIT
    assert len(listed.columns) >= 1


def test_wrong_arguments_are_explained():
    rng = np.random.default_rng(18)
    X = _data(rng, 6, 2)
    prior = NormalWishartPrior.from_data(X)
    items = Items.from_points(X - prior.mean)
    problem = whiten(items, prior, 6.0)
    with pytest.raises(ValueError, match="prices must be finite"):
        certify(problem, np.zeros(5), 0.0)
    with pytest.raises(ValueError, match="slack must be positive"):
        enumerate_columns(problem, np.zeros(6), 0.0, 0.0)
    with pytest.raises(ValueError, match="covariance types full, diag, spherical, known"):
        whiten(items, NormalWishartPrior.from_data(X, "tied"), 6.0)
    with pytest.raises(ValueError, match="would mix the features"):
        whiten(items, NormalWishartPrior.from_data(X, "diag"), 6.0, rotation=np.eye(2)[::-1])
    with pytest.raises(ValueError, match="positive weights"):
        whiten(Items.from_points(X, [0.0, 1, 1, 1, 1, 1]), prior, 5.0)
