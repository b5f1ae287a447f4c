"""Topic problems: counts, prior, objective, constraints and what they cost, against their definitions."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_matrix
from tests.topics.brute import KINDS, SOFT_KINDS, Corpus, random_corpus, xlogx

from certimap.topics.counts import cells_of, checked_counts
from certimap.topics.objective import TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem

PRIOR = TopicPrior(1.1, 1.2)


def problem(counts: Any, K: int = 2, prior: TopicPrior = PRIOR, **constraints: Any) -> TopicProblem:
    return TopicProblem.from_counts(np.array(counts), prior, K, **constraints)


# -------------------------------------------------------------------------------------------------- counts and prior
def test_dense_and_sparse_counts_are_the_same() -> None:
    dense = np.array([[0, 2, 1], [0, 0, 0], [3, 0, 1]])
    duplicated = coo_array(([1, 1, 1, 3, 1], ([0, 0, 0, 2, 2], [1, 1, 2, 0, 2])), shape=(3, 3))
    for given in (dense, dense.astype(float), csr_matrix(dense), duplicated, dense.tolist()):
        cells = cells_of(checked_counts(given))
        assert_array_equal(cells.document, [0, 0, 2, 2])
        assert_array_equal(cells.word, [1, 2, 0, 2])
        assert_array_equal(cells.count, [2, 1, 3, 1])
        assert (cells.n_documents, cells.n_words) == (3, 3)


@pytest.mark.parametrize("wrong", [0.5, -1.0, math.nan, math.inf])
def test_counts_are_whole_numbers(wrong: float) -> None:
    with pytest.raises(ValueError, match="counts must be whole numbers of tokens >= 0"):
        problem([[1.0, wrong]])


def test_counts_are_a_matrix() -> None:
    with pytest.raises(ValueError, match=r"shape \(documents, words\)"):
        problem([1, 2])


@pytest.mark.parametrize("value", [0.99, math.inf, math.nan, True, "1.1"])
@pytest.mark.parametrize("name", ["doc_topic_prior", "topic_word_prior"])
def test_priors_below_one_are_explained(name: str, value: Any) -> None:
    alpha, eta = (value, 1.1) if name == "doc_topic_prior" else (1.1, value)
    with pytest.raises(ValueError, match=rf"{name} must be a finite number >= 1.*unbounded.*no MAP exists"):
        TopicPrior(alpha, eta)


# ---------------------------------------------------------------------------------------------------------- objective
def log_density(counts: np.ndarray, prior: TopicPrior, tokens: np.ndarray, theta: Any, beta: Any) -> float:
    """Of tokens (D, V, K), without the constants of the Dirichlets."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_theta, log_beta = np.log(theta), np.log(beta)
        terms = [
            tokens.sum(axis=1) * log_theta,
            tokens.sum(axis=0).T * log_beta,
            prior.a * log_theta,
            prior.e * log_beta,
        ]
    return float(sum(np.nansum(np.where(np.isnan(t), 0.0, t)) for t in terms))


@pytest.mark.parametrize("prior", [PRIOR, TopicPrior(1.0, 1.0), TopicPrior(2.0, 1.0)])
def test_value_is_the_density_at_the_optimal_parameters(prior: TopicPrior) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, size=(4, 3))
    given = problem(counts, 3, prior)
    for _ in range(5):
        labels = rng.integers(3, size=given.n_items)
        parameters = given.objective.parameters(given.cell_labels(labels))
        assert_allclose(parameters.doc_topic.sum(axis=1), 1.0)
        assert_allclose(parameters.topic_word.sum(axis=1), 1.0)
        tokens = np.zeros((4, 3, 3))
        cells = given.cells
        tokens[cells.document, cells.word, labels] = cells.count
        best = log_density(counts, prior, tokens, parameters.doc_topic, parameters.topic_word)
        assert given.log_map(labels) == pytest.approx(best)
        for _ in range(20):
            theta, beta = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(3), size=3)
            assert log_density(counts, prior, tokens, theta, beta) <= best + 1e-9


def test_value_of_a_partition_is_the_sum_over_topics() -> None:
    rng = np.random.default_rng(1)
    given = problem(rng.integers(0, 4, size=(5, 4)), 3)
    for _ in range(10):
        labels = rng.integers(3, size=given.n_items)
        topics = sum(given.objective.value(labels == k) for k in range(3))
        assert given.log_map(labels) == pytest.approx(topics + given.objective.constant)
    assert given.objective.value([]) == pytest.approx(given.objective.value(np.zeros(given.n_items, dtype=bool)))


def test_splitting_a_cell_never_pays() -> None:
    """All ways to divide the tokens of every cell between two topics."""
    counts = np.array([[2, 1], [1, 3]])
    best_whole = Corpus(counts, 2, 1.1, 1.2, {}).optimum()
    best = -math.inf
    for first in itertools.product(*(range(n + 1) for n in counts.ravel())):
        one = np.array(first).reshape(2, 2)
        tokens = np.stack([one, counts - one], axis=2)
        value = xlogx(tokens.sum(axis=1) + PRIOR.a).sum() + xlogx(tokens.sum(axis=0) + PRIOR.e).sum()
        value -= xlogx(tokens.sum(axis=(0, 1)) + 2 * PRIOR.e).sum() + xlogx(counts.sum(axis=1) + 2 * PRIOR.a).sum()
        best = max(best, float(value))
    assert best == pytest.approx(best_whole, abs=1e-12)


# -------------------------------------------------------------------------------------------------------- constraints
@pytest.mark.parametrize("seed", range(12))
def test_value_and_violations_of_all_labellings(seed: int) -> None:
    """The problem's own value, penalties and violations against their definitions, every kind of constraint."""
    rng = np.random.default_rng(seed)
    kinds = tuple(rng.choice(KINDS + SOFT_KINDS, size=4, replace=False).tolist())
    corpus = random_corpus(rng, 3, 4, 7, 2, kinds)
    try:
        given = corpus.problem()
    except ValueError:
        assert corpus.optimum() == -math.inf
        return
    labels, values = corpus.values()
    for row, value in zip(labels, values, strict=True):
        try:
            items = given.item_labels(row)
        except ValueError:
            assert value == -math.inf
            continue
        if given.violations(items):
            assert value == -math.inf
        else:
            assert given.log_map(items) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("kind", SOFT_KINDS)
def test_a_heavy_soft_constraint_is_the_hard_one(kind: str) -> None:
    rng = np.random.default_rng(5)
    hard = kind.removeprefix("soft_")
    corpus = random_corpus(rng, 4, 3, 8, 2)
    given = {
        "must_link_words": [(0, 1)],
        "cannot_link_words": [(0, 2)],
        "seed_words": [(1, 1)],
        "fixed_tokens": [(*np.argwhere(corpus.counts)[0].tolist(), 1)],
        "max_topics": 1,
        "min_documents": 2,
    }[hard]
    heavy: dict[str, Any] = (
        {kind: [(*row, 1e4) for row in given]} if isinstance(given, list) else {hard: given, f"{hard}_weight": 1e4}
    )
    exact = Corpus(corpus.counts, 2, corpus.alpha, corpus.eta, {hard: given})
    soft = Corpus(corpus.counts, 2, corpus.alpha, corpus.eta, heavy)
    assert exact.optimum() > -math.inf
    assert soft.optimum() == pytest.approx(exact.optimum())
    best = soft.values()[0][int(soft.values()[1].argmax())]
    softly = soft.problem()
    assert softly.soft_penalty(softly.item_labels(best)) == 0.0


def test_must_links_are_transitive_and_tie_all_documents() -> None:
    given = problem([[1, 1, 0, 1], [1, 0, 1, 0]], must_link_words=[(0, 1), (1, 2)])
    assert_array_equal(given.cell_item, [0, 0, 1, 0, 0])
    with pytest.raises(ValueError, match="agree on tied cells"):
        given.item_labels([0, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"must_link_words": [(0, 4)]}, r"must_link_words must hold tuples in the ranges 0\.\.3, 0\.\.3, got \(0, 4\)"),
        ({"must_link_words": [(1, 1)]}, "must_link_words must hold pairs of different words"),
        (
            {"must_link_words": [(0, 1), (1, 2)], "cannot_link_words": [(2, 0)]},
            "tied by the must-links 'a' - 'b' - 'c'|tied by the must-links 'c' - 'b' - 'a'",
        ),
        ({"seed_words": [(0, 2)]}, "seed_words must hold tuples"),
        ({"seed_words": [(0, 0), (0, 1)]}, "must not contradict each other"),
        ({"seed_words": [(0, 0), (1, 1)], "must_link_words": [(0, 1)]}, "must not contradict must_link_words"),
        ({"seed_words": [(0, 0), (1, 0)], "cannot_link_words": [(0, 1)]}, "'a' and 'b' may not share a topic"),
        ({"fixed_tokens": [(1, 0, 0)]}, "document 1 has none of 'a'"),
        ({"max_topics": 0}, "max_topics must be None or an integer >= 1"),
        ({"max_topics": 1, "fixed_tokens": [(0, 0, 0), (0, 1, 1)]}, "max_topics must be at least 2, got 1"),
        ({"min_documents": 2}, "min_documents must be at most 1, got 2"),
        ({"min_documents": -1}, "min_documents must be None or an integer >= 0"),
        ({"max_topics": 1, "max_topics_weight": -1.0}, "max_topics_weight must be >= 0"),
        ({"soft_seed_words": [(0, 0, math.inf)]}, "soft_seed_words must hold 2 numbers and a finite weight"),
    ],
)
def test_errors_name_what_contradicts(constraints: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        problem([[1, 2, 1, 0], [0, 0, 1, 0]], word_names=["a", "b", "c", "d"], **constraints)


@pytest.mark.parametrize("n_topics", [0, 1.5, True])
def test_number_of_topics(n_topics: Any) -> None:
    with pytest.raises(ValueError, match="n_topics must be an integer >= 1"):
        problem([[1, 2]], n_topics)


def test_objective_of_no_tokens() -> None:
    cells = cells_of(checked_counts(np.zeros((2, 3), dtype=int)))
    objective = TopicObjective(cells, PRIOR, 2)
    expected = 2 * (3 * xlogx(np.array(0.2)) - xlogx(np.array(0.6)) + 2 * xlogx(np.array(0.1)))
    expected -= 2 * xlogx(np.array(0.2))
    assert objective.partition_value([]) == pytest.approx(float(expected))
