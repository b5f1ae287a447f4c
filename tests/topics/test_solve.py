"""solve_topics against enumeration of all labellings, with verified certificates; limits, conflicts, interruption."""

import math
import signal
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import assert_topics_solved
from tests.topics.brute import KINDS, SOFT_KINDS, Corpus, random_corpus, random_counts

from certimap import IterationRecord, Status, StopReason
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.solve import solve_topics

ALL_KINDS = KINDS + SOFT_KINDS
EXACT = 1e-9


def check(corpus: Corpus) -> str:
    """Solve and compare with the best of all labellings; what came out."""
    optimum = corpus.optimum()
    try:
        problem = corpus.problem()
    except ValueError:
        assert optimum == -math.inf, "possible constraints are called contradictory"
        return "contradiction"
    result = solve_topics(problem, tol=EXACT, n_init=5)
    assert_topics_solved(problem, result, optimum=optimum)
    if optimum == -math.inf:
        assert result.status is Status.INFEASIBLE
        assert result.conflict
    else:
        assert result.log_map == pytest.approx(optimum, abs=1e-9)
        # A limit of two and more topics a document is left out of the bound.
        left_out = 1 < problem.max_topics < problem.n_topics
        assert result.status in ((Status.OPTIMAL, Status.BOUNDED) if left_out else (Status.OPTIMAL,))
    return result.status.name


@pytest.mark.parametrize("kind", [None, *ALL_KINDS])
def test_small_corpora(kind: str | None) -> None:
    rng = np.random.default_rng(ALL_KINDS.index(kind) + 1 if kind else 0)
    kinds = () if kind is None else (kind,)
    outcomes = [
        check(random_corpus(rng, 4, 4, cells, n_topics, kinds)) for n_topics, cells in ((2, 10), (2, 8), (3, 7), (3, 6))
    ]
    assert "OPTIMAL" in outcomes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_combined_constraints(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    for _ in range(4):
        n_topics = int(rng.integers(1, 4))
        cells = int(rng.integers(1, {1: 12, 2: 12, 3: 8}[n_topics]))
        kinds = tuple(rng.choice(ALL_KINDS, size=rng.integers(0, 4), replace=False).tolist())
        check(random_corpus(rng, int(rng.integers(1, 6)), int(rng.integers(2, 6)), cells, n_topics, kinds))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_five_documents_of_five_words(seed: int, kind: str | None) -> None:
    rng = np.random.default_rng(2000 + seed)
    check(random_corpus(rng, 5, 5, 15, 2, () if kind is None else (kind,)))


def test_long_steps_of_the_multipliers_stay_numbers() -> None:
    """Where everything but t agrees, a step of t can be as long as its slope is small."""
    constraints = {"soft_cannot_link_words": [(1, 0, 0.3), (0, 1, 0.3)], "soft_seed_words": [(1, 1, 3.0)]}
    counts = np.array([[4, 1], [2, 1]])
    assert check(Corpus(counts, 2, 1.0, 1.5, {**constraints, "cannot_link_words": [(0, 1)]})) == "OPTIMAL"


def problem(D: int = 12, V: int = 8, K: int = 3, **constraints: Any) -> TopicProblem:
    counts = np.random.default_rng(0).poisson(0.6, size=(D, V))
    return TopicProblem.from_counts(counts, TopicPrior(1.1, 1.1), K, **constraints)


def test_answer_is_the_point_of_its_value() -> None:
    topics = problem(must_link_words=[(0, 3)], seed_words=[(1, 2)])
    seen: list[IterationRecord] = []
    result = solve_topics(topics, n_init=5, callback=seen.append)
    assert_topics_solved(topics, result, status=Status.OPTIMAL)
    assert result.assignment is not None
    parameters = topics.objective.parameters(result.assignment["z"])
    assert_allclose(result.assignment["Theta"], parameters.doc_topic)
    assert_allclose(result.assignment["beta"], parameters.topic_word)
    assert (result.assignment["z"][topics.cells.word == 1] == 2).all()
    assert tuple(seen) == result.history
    assert {record.source for record in seen} >= {"H", "C"}


@pytest.mark.parametrize("limits", [{"max_nodes": 1}, {"time_limit": 1e-3}])
def test_any_limit_leaves_a_valid_bound(limits: dict[str, Any]) -> None:
    topics = problem(10, 8, 3)
    result = solve_topics(topics, tol=EXACT, n_init=3, **limits)
    assert_topics_solved(topics, result)
    assert result.stop_reason in (StopReason.TIME, StopReason.NODES)
    assert math.isfinite(result.upper_bound)
    assert result.status is Status.BOUNDED


def test_interrupt_keeps_answer_and_bound() -> None:
    def press_control_c(record: IterationRecord) -> None:
        if record.source == "C" and record.iteration > 4:
            signal.raise_signal(signal.SIGINT)

    topics = problem(10, 8, 3)
    result = solve_topics(topics, tol=EXACT, n_init=3, callback=press_control_c)
    assert_topics_solved(topics, result)
    assert result.stop_reason is StopReason.INTERRUPTED


def test_same_seed_same_run() -> None:
    first, second = (solve_topics(problem(8, 6), n_init=3, seed=4, tol=EXACT) for _ in range(2))
    assert (first.log_map, first.upper_bound) == (second.log_map, second.upper_bound)
    assert first.statistics["nodes"] == second.statistics["nodes"]
    assert first.assignment is not None and second.assignment is not None
    assert_array_equal(first.assignment["z"], second.assignment["z"])


def test_search_alone_proves_nothing() -> None:
    result = solve_topics(problem(), algorithm="local-search")
    assert (result.status, result.upper_bound, result.certificate) == (Status.FEASIBLE, math.inf, None)
    with pytest.raises(ValueError, match="algorithm must be one of auto, local-search"):
        solve_topics(problem(), algorithm="gibbs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("constraints", "conflict"),
    [
        (
            {"cannot_link_words": [(0, 1), (1, 2), (0, 2), (3, 4)]},
            {"cannot_link_words (word 0, word 1)", "cannot_link_words (word 1, word 2)"}
            | {"cannot_link_words (word 0, word 2)"},
        ),
        (
            {"cannot_link_words": [(0, 1), (2, 3)], "max_topics": 1, "must_link_words": [(3, 4)]},
            {"at most 1 topics a document"},
        ),
        ({"must_link_words": [(v, v + 1) for v in range(7)], "min_documents": 1}, {"at least 1 documents a topic"}),
    ],
)
def test_conflicts_are_named(constraints: dict[str, Any], conflict: set[str]) -> None:
    rng = np.random.default_rng(1)
    topics = TopicProblem.from_counts(rng.integers(1, 3, size=(4, 8)), TopicPrior(1.1, 1.1), 2, **constraints)
    result = solve_topics(topics)
    assert (result.status, result.stop_reason) == (Status.INFEASIBLE, StopReason.EXHAUSTED)
    assert conflict <= set(result.conflict)
    assert not {"cannot_link_words (word 3, word 4)"} & set(result.conflict)


@pytest.mark.parametrize("counts", [np.zeros((3, 4), dtype=int), np.array([[3]]), np.array([[2, 0], [0, 0]])])
@pytest.mark.parametrize("n_topics", [1, 2])
def test_hardly_any_tokens(counts: np.ndarray, n_topics: int) -> None:
    topics = TopicProblem.from_counts(counts, TopicPrior(1.0, 1.3), n_topics)
    result = solve_topics(topics)
    assert result.log_map == pytest.approx(Corpus(counts, n_topics, 1.0, 1.3, {}).optimum())
    assert_topics_solved(topics, result)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_larger_counts(seed: int) -> None:
    rng = np.random.default_rng(3000 + seed)
    counts = 7 * random_counts(rng, 4, 4, 10)
    check(Corpus(counts, 2, 1.1, 1.1, {}))
