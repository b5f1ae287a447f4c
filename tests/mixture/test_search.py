"""Primal search against enumeration of all labellings, and what it promises beside the value."""

import itertools

import numpy as np
import pytest

from certimap.mixture.prior import COVARIANCE_TYPES, NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search import search
from certimap.mixture.search.arrays import compile_problem, new_state
from certimap.mixture.search.descent import ascend
from certimap.mixture.search.split_merge import improve_by_split_merge

CONSTRAINTS = {
    "none": {},
    "must_link": {"must_link": [(0, 3), (3, 5)]},
    "cannot_link": {"cannot_link": [(0, 1), (1, 2), (0, 2), (3, 4)]},
    "min_size": {"min_size": 2},
    "max_size": {"max_size": 3},
    "sizes": {"min_size": 2, "max_size": 3},
    "known_labels": {"known_labels": [2, -1, -1, 1, -1, -1, -1]},
    "soft": {"soft_must_link": [(0, 1, 1.5), (2, 6, 0.7)], "soft_cannot_link": [(0, 2, 2.0), (4, 5, 1.1)]},
    "weights": {"sample_weight": [0.0, 2.0, 1.0, 0.5, 3.0, 1.0, 0.0]},
    "all": {
        "must_link": [(0, 3)],
        "cannot_link": [(0, 1), (2, 4)],
        "min_size": 1,
        "max_size": 4,
        "known_labels": [-1, 1, -1, -1, -1, -1, 2],
        "soft_must_link": [(0, 5, 0.8), (0, 3, 1.0)],
        "soft_cannot_link": [(3, 0, 0.5), (5, 6, 0.4)],
        "sample_weight": [1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 1.0],
    },
}


def _data(seed, n=7, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 2.0 * rng.integers(0, 3, size=(n, 1))


def _problem(X, covariance_type="full", n_clusters=3, changes=None, **constraints):
    changes = dict(changes or {})
    if covariance_type == "known":
        changes.setdefault("covariance_prior", 0.4 * np.cov(X.T))
    prior = NormalWishartPrior.from_data(X, covariance_type, **changes)
    return MixtureProblem.from_points(X, prior, n_clusters, **constraints)


def _feasible_labellings(problem):
    """All of them; where clusters are interchangeable one of every class."""
    free = (problem.fixed < 0).all()
    for labels in itertools.product(range(problem.n_clusters), repeat=len(problem.items)):
        if free and any(k > max(labels[:i], default=-1) + 1 for i, k in enumerate(labels)):
            continue
        if not problem.violations(np.array(labels)):
            yield np.array(labels)


def _check(problem, result):
    """What holds for every result that has labels."""
    assert result.labels is not None
    assert problem.violations(result.labels) == []
    assert result.value == problem.log_map(result.labels)
    for before, after in itertools.pairwise(result.pool):
        assert before.value >= after.value
        assert not np.array_equal(before.labels, after.labels)
    for optimum in result.pool:
        assert problem.violations(optimum.labels) == []


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_finds_the_optimum_of_small_problems(covariance_type, kind):
    X = _data(17)
    # A weak prior, so that the optimum is no single cluster.
    changes = {"mean_precision_prior": 0.05, "weight_concentration_prior": 1.3}
    if covariance_type != "known":
        changes["covariance_prior"] = 0.3 * np.eye(2)
    problem = _problem(X, covariance_type, changes=changes, **CONSTRAINTS[kind])
    result = search(problem, n_starts=30, seed=1)
    _check(problem, result)
    best = max(problem.log_map(labels) for labels in _feasible_labellings(problem))
    assert result.value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("kind", CONSTRAINTS)
def test_incremental_value_is_the_closed_form_at_a_local_optimum(covariance_type, kind):
    problem = _problem(_data(18), covariance_type, **CONSTRAINTS[kind])
    instance = compile_problem(problem)
    K, item_count = problem.n_clusters, len(problem.items)
    for labels in itertools.islice(_feasible_labellings(problem), 0, None, 41):
        state = new_state(instance, labels.copy())
        value = ascend(instance, state) + instance.offset
        assert problem.violations(state.labels) == []
        assert value == pytest.approx(problem.log_map(state.labels), abs=1e-9)
        assert value >= problem.log_map(labels) - 1e-9
        for item, k in itertools.product(range(item_count), range(K)):
            moved = state.labels.copy()
            moved[item] = k
            assert problem.violations(moved) or problem.log_map(moved) <= value + 1e-8


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_more_features_and_groups(covariance_type):
    rng = np.random.default_rng(20)
    X = rng.normal(size=(60, 5)) + 4.0 * np.eye(5)[rng.integers(0, 3, size=60)]
    problem = _problem(
        X,
        covariance_type,
        4,
        must_link=[(i, i + 1) for i in range(0, 20, 2)],
        cannot_link=[(i, i + 30) for i in range(10, 25)],
        min_size=5,
        max_size=25,
    )
    result = search(problem, n_starts=20, seed=3)
    _check(problem, result)
    assert result.n_failed == 0
    sizes = np.bincount(problem.point_labels(result.labels))
    assert sizes.min() >= 5 and sizes.max() <= 25


def test_same_result_for_any_number_of_threads():
    X = np.random.default_rng(21).normal(size=(80, 3))
    problem = _problem(X, cannot_link=[(0, 1), (1, 2)], min_size=10)
    results = [search(problem, n_starts=30, seed=5, n_jobs=n_jobs) for n_jobs in (1, 2, -1)]
    for other in results[1:]:
        assert other.value == results[0].value
        assert len(other.pool) == len(results[0].pool)
        for mine, theirs in zip(results[0].pool, other.pool, strict=True):
            np.testing.assert_array_equal(mine.labels, theirs.labels)


def test_pool_numbers_free_clusters_by_first_item():
    result = search(_problem(_data(22, n=30)), n_starts=30)
    for optimum in result.pool:
        _, first = np.unique(optimum.labels, return_index=True)
        assert (np.diff(first) > 0).all()


def test_graph_colouring_that_greedy_starts_miss():
    # A crown graph: neighbours in numbering order mislead greedy colouring into many colours, two suffice.
    n = 8
    crown = [(2 * i, 2 * j + 1) for i in range(n) for j in range(n) if i != j]
    X = np.random.default_rng(23).normal(size=(2 * n, 2))
    problem = _problem(X, n_clusters=2, cannot_link=crown, min_size=n)
    result = search(problem, n_starts=5)
    _check(problem, result)
    assert len(set(result.labels[0::2])) == len(set(result.labels[1::2])) == 1


def test_infeasible_problem_is_reported():
    X = _data(24)
    clique = list(itertools.combinations(range(4), 2))
    result = search(_problem(X, cannot_link=clique), n_starts=4)
    assert result.labels is None
    assert result.value == -np.inf
    assert result.pool == ()
    assert result.n_failed == result.n_starts
    assert result.proved_infeasible


def test_one_cluster_and_more_clusters_than_points():
    X = _data(25)
    assert (search(_problem(X, n_clusters=1), n_starts=3).labels == 0).all()
    _check(problem := _problem(X[:4], n_clusters=6), search(problem, n_starts=5))


@pytest.mark.parametrize(
    ("name", "n_clusters", "best"), [("iris", 3, 73.3432), ("wine", 3, -530.4351), ("brca", 2, -634.1261)]
)
def test_reference_values(name, n_clusters, best):
    result = search(_problem(_reference_data(name), n_clusters=n_clusters), n_starts=100)
    assert result.value == pytest.approx(best, abs=1e-4)


def _reference_data(name):
    from sklearn.datasets import load_breast_cancer, load_iris, load_wine
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    if name == "iris":
        return PCA(3).fit_transform(load_iris().data)
    if name == "wine":
        return PCA(6).fit_transform(StandardScaler().fit_transform(load_wine().data))
    bunch = load_breast_cancer()
    chosen = [list(bunch.feature_names).index(f) for f in ("worst area", "worst smoothness", "mean texture")]
    return StandardScaler().fit_transform(bunch.data[:, chosen])


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_far_outliers_and_duplicates(covariance_type):
    rng = np.random.default_rng(26)
    X = rng.normal(size=(40, 3))
    X[0] *= 1e6
    X[1:6] = X[6]
    problem = _problem(X, covariance_type)
    _check(problem, search(problem, n_starts=10))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be at least 1, got 0"),
        ({"must_link": [(0, 7)]}, r"must_link must hold pairs of different points in 0\.\.6, got \(0, 7\)"),
        ({"cannot_link": [(2, 2)]}, r"cannot_link must hold pairs of different points .* got \(2, 2\)"),
        (
            {"must_link": [(0, 4), (4, 2), (2, 5)], "cannot_link": [(0, 5)]},
            r"got the pair \(0, 5\): the points are tied by the must-links 0 - 4 - 2 - 5",
        ),
        ({"min_size": 3}, r"min_size must be in 0\.\.2, got 3: 3 clusters share 7 points"),
        ({"max_size": 2}, "max_size must be at least 3, got 2: 3 clusters hold 7 points"),
        ({"min_size": 2, "max_size": 1}, "max_size must be at least 3, got 1"),
        ({"known_labels": [0, 1]}, r"known_labels must have shape \(7,\), got \(2,\)"),
        ({"known_labels": [0, 1, 3, 0, 0, 0, 0]}, r"known_labels must be -1 .* in 0\.\.2, got 0\.\.3"),
        (
            {"known_labels": [0, -1, -1, 1, -1, -1, -1], "must_link": [(0, 5), (5, 3)]},
            "got 0 for point 0 and 1 for point 3, tied by the must-links 0 - 5 - 3",
        ),
        (
            {"known_labels": [1, -1, -1, -1, 1, -1, -1], "must_link": [(0, 5)], "cannot_link": [(4, 5)]},
            r"got cluster 1 for both points of the pair \(4, 5\)",
        ),
        ({"soft_must_link": [(0, 1, -1.0)]}, "soft_must_link must have finite weights >= 0, got -1.0"),
    ],
)
def test_problem_errors_name_the_argument(changes, message):
    X = _data(27)
    prior = NormalWishartPrior.from_data(X)
    with pytest.raises(ValueError, match=message):
        MixtureProblem.from_points(X, prior, **{"n_clusters": 3, **changes})


def test_other_errors():
    problem = _problem(_data(28), must_link=[(0, 1)])
    for arguments, message in (
        ({"n_starts": 0}, "n_starts must be at least 1"),
        ({"seed": -1}, "seed must be a non-negative integer"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
    ):
        with pytest.raises(ValueError, match=message):
            search(problem, **arguments)
    with pytest.raises(ValueError, match="labels must agree on tied points, got 0 for point 0"):
        problem.item_labels([0, 1, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"X must have shape \(points, 2\) as the prior"):
        MixtureProblem.from_points(np.ones((3, 4)), problem.prior, 2)


def test_labels_of_points_and_items():
    problem = _problem(_data(29), must_link=[(1, 4)])
    labels = [0, 1, 2, 0, 1, 2, 0]
    items = problem.item_labels(labels)
    assert len(items) == 6
    np.testing.assert_array_equal(problem.point_labels(items), labels)


def test_violations_are_named():
    problem = _problem(
        _data(30), cannot_link=[(0, 1)], min_size=1, max_size=5, known_labels=[-1, -1, 2, -1, -1, -1, -1]
    )
    assert problem.violations([0] * 7) == [
        "cannot-linked items 0 and 1 share cluster 0",
        "item 2 is in cluster 0, fixed to 2",
        "cluster 0 has 7 points, allowed 1..5",
        "cluster 1 has 0 points, allowed 1..5",
        "cluster 2 has 0 points, allowed 1..5",
    ]


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_split_and_merge_leave_an_optimum_that_ascent_cannot(covariance_type):
    rng = np.random.default_rng(31)
    centres = 30.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    X = np.repeat(centres, 25, axis=0) + rng.normal(size=(100, 2))
    changes = {"covariance_prior": np.eye(2)}
    known_labels = [0] + [-1] * 99
    problem = _problem(X, covariance_type, 4, changes, known_labels=known_labels, cannot_link=[(0, 30)])
    planted = np.repeat([0, 1, 2, 3], 25)
    # One cluster serves two groups of points and two clusters share one.
    stuck = np.where(planted == 3, 2, planted)
    stuck[(planted == 0) & (X[:, 0] > 0.0)] = 3
    stuck[0] = 0
    instance = compile_problem(problem)
    state = new_state(instance, stuck)
    before = ascend(instance, state) + instance.offset
    value, labels = improve_by_split_merge(instance, np.random.default_rng(0), state.labels, before)
    assert before < problem.log_map(planted) - 20.0
    assert value == pytest.approx(problem.log_map(labels))
    assert value >= problem.log_map(planted) - 1e-9
    assert problem.violations(labels) == []
