"""Search for topics: the optimum of small corpora under every kind of constraint, determinism, feasibility."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.topics.brute import KINDS, SOFT_KINDS, random_corpus

from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.search.feasibility import find_feasible
from certimap.topics.search.multistart import search

ALL_KINDS = KINDS + SOFT_KINDS


@pytest.mark.parametrize("kind", [None, *ALL_KINDS])
@pytest.mark.parametrize("n_topics", [2, 3])
def test_optimum_of_small_corpora(kind: str | None, n_topics: int) -> None:
    rng = np.random.default_rng(ALL_KINDS.index(kind) if kind else 99)
    solved = 0
    while solved < 3:
        corpus = random_corpus(rng, 4, 4, 9 if n_topics == 2 else 7, n_topics, (kind,) if kind else ())
        try:
            problem = corpus.problem()
        except ValueError:
            continue
        best = corpus.optimum()
        found = search(problem, 5, seed=1)
        assert found.proved_infeasible == (best == -np.inf)
        if found.labels is None:
            continue
        assert problem.violations(found.labels) == []
        assert found.value == problem.log_map(found.labels) == pytest.approx(best, abs=1e-9)
        values = [optimum.value for optimum in found.pool]
        assert values == sorted(values, reverse=True)
        for optimum in found.pool:
            assert problem.violations(optimum.labels) == []
            assert optimum.value == problem.log_map(optimum.labels)
        solved += 1


def larger(**constraints: object) -> TopicProblem:
    counts = np.random.default_rng(3).poisson(0.4, size=(30, 20))
    return TopicProblem.from_counts(counts, TopicPrior(1.1, 1.1), 4, **constraints)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "constraints", [{}, {"must_link_words": [(0, 1)], "cannot_link_words": [(2, 3)], "max_topics": 2}]
)
def test_same_answer_for_any_number_of_threads(constraints: dict[str, object]) -> None:
    problem = larger(**constraints)
    runs = [search(problem, 6, seed=5, n_jobs=n) for n in (1, 2)]
    assert runs[0].labels is not None and runs[1].labels is not None
    assert_array_equal(runs[0].labels, runs[1].labels)
    assert [o.value for o in runs[0].pool] == [o.value for o in runs[1].pool]
    assert runs[0].value != search(problem, 1, seed=6).value or runs[0].n_starts == 6


def test_interruption_keeps_what_was_found() -> None:
    calls: list[bool] = []
    found = search(larger(), 50, interrupted=lambda: len(calls) > 0, after_start=lambda best: calls.append(True))
    assert found.labels is not None
    assert found.n_starts < 50


@pytest.mark.parametrize(("name", "wrong"), [("n_starts", 0), ("pool_size", 0), ("seed", -1)])
def test_arguments(name: str, wrong: int) -> None:
    with pytest.raises(ValueError, match=name):
        search(larger(), **{name: wrong})


def test_feasible_labelling_by_integer_programming() -> None:
    problem = larger(max_topics=2, min_documents=8, cannot_link_words=[(0, 1), (1, 2)], seed_words=[(5, 3)])
    found = find_feasible(problem, seed=0)
    assert found.labels is not None and problem.violations(found.labels) == []
    crowded = larger(cannot_link_words=[(u, w) for u in range(5) for w in range(u)])
    assert find_feasible(crowded, seed=0).proved_infeasible
