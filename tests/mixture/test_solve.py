"""solve_mixture: records, limits, interruption, infeasible problems."""

import signal
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import assert_mixture_solved

from certimap import IterationRecord, Status, StopReason
from certimap.engines.ledger import Ledger
from certimap.mixture.clusters import IntArray
from certimap.mixture.constraints import ClusterConstraints
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search import SearchResult, search
from certimap.mixture.solve import solve_mixture


def problem(n: int = 40, K: int = 3, **constraints: object) -> MixtureProblem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) + 3.0 * rng.normal(size=(K, 2))[np.arange(n) % K]
    given = ClusterConstraints.from_arguments(n, K, **constraints)  # type: ignore[arg-type]
    return given.problem(X, NormalWishartPrior.from_data(X), K)


def test_answer_is_the_point_of_its_value() -> None:
    mixture = problem(must_link=[(0, 3), (3, 7)])
    seen: list[IterationRecord] = []
    result = solve_mixture(mixture, n_init=9, seed=4, algorithm="local-search", callback=seen.append)
    assert result.assignment is not None
    labels = mixture.item_labels(result.assignment["z"])
    assert mixture.violations(labels) == []
    assert result.log_map == mixture.log_map(labels) == search(mixture, 9, 4).value
    parameters = mixture.objective.parameters(labels)
    assert_allclose(result.assignment["pi"], parameters.weights)
    assert_allclose(result.assignment["Lambda"], parameters.precisions)
    assert (result.status, result.stop_reason) == (Status.FEASIBLE, StopReason.ITERATIONS)
    assert tuple(seen) == result.history
    values = [record.incumbent for record in seen]
    assert values == sorted(set(values))
    assert result.statistics["starts"] == 9


def test_time_limit_keeps_the_first_answer() -> None:
    mixture = problem()
    result = solve_mixture(mixture, n_init=100_000, time_limit=1e-9)
    assert result.stop_reason is StopReason.TIME
    assert result.statistics["starts"] == 1
    assert np.isfinite(result.upper_bound)  # a first bound is computed whatever the limits
    assert_mixture_solved(mixture, result, status=Status.BOUNDED)


def test_interrupt_keeps_the_answer() -> None:
    def press_control_c(record: IterationRecord) -> None:
        signal.raise_signal(signal.SIGINT)

    result = solve_mixture(problem(), n_init=100_000, n_jobs=2, callback=press_control_c)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.assignment is not None


def test_stopped_search_reports_what_it_did() -> None:
    def after(count: int) -> Callable[[IntArray | None], bool]:
        calls: list[bool] = []
        return lambda best: bool(calls.append(best is not None) or len(calls) == count)

    for count in (1, 8, 11):
        found = search(problem(), 12, 0, should_stop=after(count))
        assert found.n_starts == count
        assert found.labels is not None
    whole = search(problem(), 12, 0)
    assert search(problem(), 12, 0, should_stop=lambda best: False).value == whole.value


@pytest.mark.parametrize(
    ("constraints", "conflict"),
    [
        (
            # Three points in different clusters, and a fourth that none of the clusters takes.
            {"cannot_link": [(0, 1), (0, 2), (1, 2), (9, 0), (9, 1), (9, 2), (20, 21)], "must_link": [(0, 5)]},
            {f"cannot_link {pair}" for pair in [(0, 1), (0, 2), (1, 2), (0, 9), (1, 9), (2, 9)]}
            | {"must_link ties points 0, 5"},
        ),
        (
            {"y": [0] * 15 + [1] * 5 + [-1] * 20, "max_cluster_size": 14},
            {"maximum cluster size 14"} | {f"known label 0 of point {i}" for i in range(15)},
        ),
        (
            {"must_link": [(0, i) for i in range(1, 30)], "min_cluster_size": 6},
            {"minimum cluster size 6", "must_link ties points 0, 1, 2, 3, 4, 5, ... (30 in all)"},
        ),
        (
            {"must_link": [(0, i) for i in range(1, 16)], "max_cluster_size": 15},
            {"maximum cluster size 15", "must_link ties points 0, 1, 2, 3, 4, 5, ... (16 in all)"},
        ),
    ],
)
def test_infeasible(constraints: dict[str, object], conflict: set[str]) -> None:
    result = solve_mixture(problem(**constraints))
    assert (result.status, result.stop_reason) == (Status.INFEASIBLE, StopReason.EXHAUSTED)
    assert result.assignment is None
    assert result.log_map == result.upper_bound == -np.inf
    assert set(result.conflict) == conflict


def test_labels_of_tied_points_agree() -> None:
    result = solve_mixture(problem(must_link=[(0, 1)], cannot_link=[(1, 2)]), n_init=5)
    assert result.assignment is not None
    z = result.assignment["z"]
    assert_array_equal(z[[0]], z[[1]])
    assert z[1] != z[2]


def test_proof_and_better_labels_reach_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = problem()
    best = search(mixture, 50, 0)
    assert best.labels is not None

    def prove(given: MixtureProblem, found: SearchResult, ledger: Ledger, **options: object) -> None:
        ledger.offer({"z": given.point_labels(best.labels)}, best.value + 1e-9)
        ledger.prove(best.value + 0.01)
        ledger.record("C", open_nodes=0)

    monkeypatch.setattr("certimap.mixture.solve.prove", prove)
    result = solve_mixture(mixture, n_init=1)
    assert (result.status, result.stop_reason) == (Status.OPTIMAL, StopReason.TOLERANCE)
    assert result.assignment is not None
    assert_array_equal(result.assignment["z"], mixture.point_labels(best.labels))
    assert_allclose(result.assignment["mu"], mixture.objective.parameters(best.labels).means)
    assert result.upper_bound == best.value + 0.01
    assert result.history[-1].source == "C"
    assert solve_mixture(mixture, n_init=1, algorithm="local-search").status is Status.FEASIBLE
