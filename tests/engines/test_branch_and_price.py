"""Branch-and-price on one-dimensional clusters: dynamic programming, enumeration, constraints, early stops, proofs."""

import dataclasses
import math
import os
import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers import assert_solved, enumerate_map

from certimap import (
    CertificateError,
    IterationRecord,
    Model,
    ModelError,
    Result,
    Status,
    StopReason,
    at_least,
    at_most,
    cannot_link,
    fix,
    must_link,
    potts,
    soft,
    table,
)
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.conflict import irreducible_conflict
from certimap.engines.ledger import Ledger, Limits
from certimap.engines.set_partitioning import best_cover
from certimap.graph.compile import compile_model
from certimap.model.partition import clusters_1d
from certimap.results import classify
from certimap.verification.checker import verify


def run(model: Model, *, seed: int = 0, callback: Any = None, **limits: Any) -> Result:
    """One solve by branch-and-price, packed as `solve` does."""
    ledger = Ledger(Limits(**limits), callback)
    engine = BranchAndPrice(compile_model(model), ledger, seed=seed)
    with ledger.interruptible():
        reason = engine.run()
    status = classify(ledger.log_map, ledger.upper_bound, ledger.limits.gap)
    conflict = irreducible_conflict(model, Ledger(Limits())) if status is Status.INFEASIBLE else ()
    return Result(
        assignment=ledger.assignment,
        log_map=ledger.log_map,
        upper_bound=ledger.upper_bound,
        status=status,
        stop_reason=reason,
        certificate=engine.certificate(conflict),
        history=tuple(ledger.history),
        conflict=conflict,
        statistics={"nodes": ledger.nodes, "lp_solves": engine.solves, "columns": len(engine.pool)},
    )


def clusters(y: Any, n_clusters: int, variance: float = 1.0) -> tuple[Model, Any]:
    m = Model()
    z = m.categorical("z", n_clusters, shape=len(y))
    m.add(clusters_1d(z, y, variance))
    return m, z


def mixed_points(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) * 2.0 + rng.integers(0, 3, n) * 3.0


def k_means_by_dynamic_programming(y: np.ndarray, n_clusters: int) -> float:
    """Optimal clusters on the line are intervals of the sorted points."""
    y = np.sort(y - y.mean())
    n = len(y)
    s, q = np.concatenate([[0.0], np.cumsum(y)]), np.concatenate([[0.0], np.cumsum(y * y)])
    loss = np.full((n_clusters + 1, n + 1), np.inf)
    loss[0, 0] = 0.0
    for k in range(1, n_clusters + 1):
        for j in range(1, n + 1):
            i = np.arange(j)
            loss[k, j] = (loss[k - 1, i] + (q[j] - q[i] - (s[j] - s[i]) ** 2 / (j - i)) / 2.0).min()
    return -float(loss[1:, n].min())


@pytest.mark.parametrize(
    ("n", "n_clusters", "seed"), [(1, 1, 0), (5, 7, 1), (20, 3, 2), (60, 4, 3), (100, 3, 4), (100, 5, 5)]
)
def test_k_means_equals_dynamic_programming(n: int, n_clusters: int, seed: int) -> None:
    y = mixed_points(n, seed)
    model, _ = clusters(y, n_clusters)
    result = run(model)
    assert_solved(model, result, optimum=k_means_by_dynamic_programming(y, n_clusters), status=Status.OPTIMAL)


@st.composite
def constrained_clusters(draw: st.DrawFn) -> Model:
    """Up to 7 points in up to 3 clusters with every kind of constraint; infeasible ones included."""
    n, n_clusters = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    points = draw(st.lists(st.integers(-12, 12), min_size=n, max_size=n))
    model, z = clusters(np.array(points) / 3.0, n_clusters, draw(st.sampled_from([0.5, 1.0])))
    item = st.integers(0, n - 1)
    pairs = st.tuples(item, item).filter(lambda p: p[0] != p[1])
    if n > 1:
        model.constrain([must_link(z[i], z[j]) for i, j in draw(st.lists(pairs, max_size=2))])
        model.constrain([cannot_link(z[i], z[j]) for i, j in draw(st.lists(pairs, max_size=3))])
        for i, j in draw(st.lists(pairs, max_size=2)):
            link = draw(st.sampled_from([must_link, cannot_link]))
            model.add(soft(link(z[i], z[j]), weight=draw(st.floats(0.0, 3.0))))
        for i in draw(st.lists(item, max_size=2, unique=True)):
            model.constrain(fix(z[i], draw(st.integers(0, n_clusters - 1))))
    low, high = draw(st.integers(0, n // n_clusters)), draw(st.integers(1, n))
    for k in range(n_clusters):
        if low:
            model.constrain(at_least(low, z, value=k))
        if high < n:
            model.constrain(at_most(high, z, value=k))
    return model


@given(constrained_clusters(), st.sampled_from([0.0, 1e-6, 1e-2]))
def test_constrained_clusters_equal_brute_force(model: Model, gap: float) -> None:
    result = run(model, gap=gap)
    optimum, _ = enumerate_map(model)
    assert_solved(model, result, optimum=optimum)
    if optimum == -math.inf:
        assert result.status is Status.INFEASIBLE
    else:
        assert result.upper_bound - result.log_map <= (gap + 2e-12) * (1.0 + abs(optimum))


def linked_points(n: int, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    model, z = clusters(rng.normal(size=n) * 2.0, 3)
    for _ in range(n // 2):
        i, j = rng.choice(n, 2, replace=False)
        model.constrain(cannot_link(z[i], z[j]))
    for k in range(3):
        model.constrain(at_least(n // 3 - 1, z, value=k))
    return model


@pytest.mark.parametrize("seed", range(3))
def test_links_and_sizes_are_solved_and_verified(seed: int) -> None:
    model = linked_points(30, seed)
    assert_solved(model, run(model), status=Status.OPTIMAL)


@pytest.mark.parametrize(
    ("n", "n_clusters", "links", "seed"),
    [(16, 4, 24, 7), (20, 4, 30, 0), pytest.param(30, 5, 60, 1, marks=pytest.mark.slow)],
)
def test_tree_alone_closes_the_gap(
    n: int, n_clusters: int, links: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    model, z = clusters(rng.normal(size=n) * 2.0, n_clusters)
    for _ in range(links):
        i, j = rng.choice(n, 2, replace=False)
        model.constrain(cannot_link(z[i], z[j]))
    listed = run(model)
    monkeypatch.setattr(BranchAndPrice, "close_by_list", lambda *_: None)
    branched = run(model)
    assert branched.statistics["nodes"] >= 3
    assert_solved(model, branched, optimum=listed.log_map, status=Status.OPTIMAL)
    assert_solved(model, listed, optimum=branched.log_map, status=Status.OPTIMAL)


def test_a_list_of_columns_proves_optimality() -> None:
    rng = np.random.default_rng(3)
    model, z = clusters(rng.normal(size=8), 3)
    for _ in range(6):
        i, j = rng.choice(8, 2, replace=False)
        model.add(potts(z[i], z[j], weight=float(rng.normal() * 2.0)))
    result = run(model, gap=0.0)
    assert_solved(model, result, optimum=enumerate_map(model)[0])
    assert result.certificate is not None
    assert "columns" in {leaf["kind"] for leaf in result.certificate.details["leaves"]}
    assert result.stop_reason in (StopReason.EXHAUSTED, StopReason.TOLERANCE)


def test_labels_name_the_clusters() -> None:
    y = np.array([0.0, 0.1, 5.0, 5.1, 9.0])
    model, z = clusters(y, 3)
    model.constrain(fix(z[0], 2), fix(z[4], 0))
    result = run(model)
    assert_solved(model, result, status=Status.OPTIMAL)
    assert result.assignment is not None
    assert result.assignment["z"].tolist() == [2, 2, 1, 1, 0]


@pytest.mark.parametrize(
    "limit", [{"max_nodes": 1}, {"max_iterations": 1}, {"time_limit": 1e-9}, {"memory_limit": 1e-9}]
)
def test_any_limit_leaves_a_valid_bound(limit: dict[str, Any]) -> None:
    y = mixed_points(40, 0)
    model, _ = clusters(y, 3)
    result = run(model, gap=0.0, **limit)
    assert math.isfinite(result.upper_bound)
    assert_solved(model, result, optimum=k_means_by_dynamic_programming(y, 3))


def test_interruption_keeps_the_results() -> None:
    y = mixed_points(40, 1)
    model, _ = clusters(y, 3)

    def interrupt(record: IterationRecord) -> None:
        if record.source == "C":
            os.kill(os.getpid(), signal.SIGINT)

    result = run(model, gap=0.0, callback=interrupt)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert math.isfinite(result.upper_bound)
    assert_solved(model, result, optimum=k_means_by_dynamic_programming(y, 3))


def test_same_seed_same_run() -> None:
    model = linked_points(24, 5)
    first, second = run(model, seed=7), run(model, seed=7)
    assert [(r.bound, r.incumbent, r.columns) for r in first.history] == [
        (r.bound, r.incumbent, r.columns) for r in second.history
    ]


def test_what_tells_clusters_apart_is_refused_by_name() -> None:
    def with_points() -> tuple[Model, Any]:
        return clusters([0.0, 1.0, 2.0], 2)

    model, z = with_points()
    model.add(table([z[0], z[1]], np.zeros((2, 2)), name="prior"))
    with pytest.raises(ModelError, match="prior"):
        run(model)
    model, z = with_points()
    model.add(2.0 * z[0].is_(1))
    with pytest.raises(ModelError, match="linear term"):
        run(model)
    model, z = with_points()
    model.constrain(at_least(1, z, value=0))
    with pytest.raises(ModelError, match="the same for all clusters"):
        run(model)
    model, z = with_points()
    model.constrain(at_most(1, z[:2], value=0))
    with pytest.raises(ModelError, match="some of the items"):
        run(model)
    model, z = with_points()
    model.real("w", 0.0, 1.0)
    with pytest.raises(ModelError, match="w is not an item"):
        run(model)
    model, z = with_points()
    model.add(soft(at_most(1, z, value=0), weight=1.0))
    with pytest.raises(ModelError, match="not a soft link"):
        run(model)


def test_best_cover_is_exact() -> None:
    masks = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=bool)
    slack = np.array([0.3, 0.1, 0.05, 0.2])
    two = best_cover(masks, slack, 2, None, 1.0, 1000)
    assert two.columns is not None
    assert sorted(two.columns.tolist()) == [2, 3]
    assert two.complete
    assert two.slack == pytest.approx(0.25)
    assert best_cover(masks, slack, 3, None, 1.0, 1000).columns is None
    assert best_cover(masks, slack, 3, 0.0, 1.0, 1000).columns is not None
    assert best_cover(masks, slack, 2, None, 0.2, 1000).columns is None
    assert not best_cover(masks, slack, 2, None, 1.0, 1).complete


@pytest.fixture(scope="module")
def solved() -> tuple[Model, Any]:
    """A model with a proof by a list of columns."""
    rng = np.random.default_rng(3)
    model, z = clusters(rng.normal(size=8), 3)
    for _ in range(6):
        i, j = rng.choice(8, 2, replace=False)
        model.add(potts(z[i], z[j], weight=float(rng.normal() * 2.0)))
    certificate = run(model, gap=0.0).certificate
    assert certificate is not None
    verify(certificate, model)
    return model, certificate


class TestCorruptedProofs:
    """The verifier refuses proofs that were changed anywhere."""

    @staticmethod
    def leaf_with(certificate: Any, **changes: Any) -> Any:
        leaves = [{**leaf, **changes} for leaf in certificate.details["leaves"]]
        return dataclasses.replace(certificate, details={**certificate.details, "leaves": leaves})

    def test_lower_price(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        price = certificate.details["leaves"][0]["price"]
        with pytest.raises(CertificateError, match="reduced value"):
            verify(self.leaf_with(certificate, price=price - 0.1), model)

    def test_changed_multiplier(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        multipliers = np.array(certificate.details["leaves"][0]["multipliers"])
        multipliers[0] -= 1.0
        with pytest.raises(CertificateError):
            verify(self.leaf_with(certificate, multipliers=multipliers), model)

    def test_lower_bound_claim(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        wrong = self.leaf_with(certificate, bound=certificate.upper_bound - 0.1)
        with pytest.raises(CertificateError):
            verify(dataclasses.replace(wrong, upper_bound=certificate.upper_bound - 0.1), model)

    def test_dropped_column(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        columns = certificate.details["leaves"][0]["columns"]
        with pytest.raises(CertificateError, match="not listed"):
            verify(self.leaf_with(certificate, columns=columns[:0]), model)

    def test_dropped_leaf(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        with pytest.raises(CertificateError, match="cover"):
            verify(dataclasses.replace(certificate, details={**certificate.details, "leaves": []}), model)

    def test_node_without_sibling(self, solved: tuple[Model, Any]) -> None:
        model, certificate = solved
        tree = np.array([[-1, -1, -1, -1], [0, 0, 1, 1]])
        leaves = [{**certificate.details["leaves"][0], "node": 1}]
        wrong = dataclasses.replace(certificate, details={"tree": tree, "leaves": leaves})
        with pytest.raises(CertificateError, match="do not cover"):
            verify(wrong, model)

    @pytest.mark.parametrize("kind", ["contradiction", "infeasible", "unheard-of"])
    def test_wrong_argument(self, solved: tuple[Model, Any], kind: str) -> None:
        model, certificate = solved
        with pytest.raises(CertificateError):
            verify(self.leaf_with(certificate, kind=kind), model)

    @pytest.mark.parametrize("key", ["multipliers", "price", "columns", "kind"])
    def test_missing_part(self, solved: tuple[Model, Any], key: str) -> None:
        model, certificate = solved
        leaves = [{k: v for k, v in leaf.items() if k != key} for leaf in certificate.details["leaves"]]
        with pytest.raises(CertificateError, match="malformed"):
            verify(dataclasses.replace(certificate, details={**certificate.details, "leaves": leaves}), model)
