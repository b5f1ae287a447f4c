"""Baselines of the topic model on one objective."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln
from tests.baselines.topics import TINY, topics
from tests.helpers import ROUNDING

from certimap.baselines.gibbs_topics import gibbs_topics_best, gibbs_topics_mode, topic_chain, topic_word_mean
from certimap.baselines.run import MethodRun
from certimap.baselines.topic_posterior import log_density, token_objective, tokens
from certimap.baselines.variational_topics import variational_topics
from certimap.topics.problem import TopicProblem

BLOCKS = np.kron(np.eye(2, dtype=np.int64), np.full((6, 4), 3))  # two topics that share no word


def assert_evaluated(problem: TopicProblem, run: MethodRun) -> None:
    for result in (run.returned, run.refitted):
        assert result.assignment is not None
        point = [result.assignment[name] for name in ("z", "Theta", "beta")]
        assert result.log_map == pytest.approx(log_density(problem, *point), rel=ROUNDING)
        assert np.allclose(point[1].sum(axis=1), 1.0) and np.allclose(point[2].sum(axis=1), 1.0)
    assert run.returned.log_map <= run.refitted.log_map + ROUNDING
    assert run.refitted.assignment is not None
    assert run.refitted.log_map == token_objective(problem).partition_value(run.refitted.assignment["z"])


def test_tokens_follow_the_cells() -> None:
    problem = topics()
    document, word = tokens(problem.cells)
    assert document.tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert word.tolist() == [0, 0, 2, 1, 1, 1, 2, 0, 1]
    for z in product(range(2), repeat=len(problem.cells)):
        labels = np.repeat(z, problem.cells.count)
        assert token_objective(problem).partition_value(labels) == pytest.approx(problem.log_map(z), rel=ROUNDING)


def test_log_density_by_hand() -> None:
    problem = topics([[2, 1]], alpha=1.5, eta=2.0)
    theta, beta = np.array([[0.25, 0.75]]), np.array([[0.5, 0.5], [0.9, 0.1]])
    likelihood = np.log(0.25 * 0.5) + np.log(0.75 * 0.9) + np.log(0.75 * 0.1)  # z = 0, 1 for word 0; 1 for word 1
    priors = 0.5 * np.log(0.25 * 0.75) + 1.0 * np.log(0.5 * 0.5 * 0.9 * 0.1)
    assert log_density(problem, [0, 1, 1], theta, beta) == pytest.approx(likelihood + priors)


@pytest.mark.parametrize("counts", [BLOCKS, TINY], ids=["blocks", "tiny"])
def test_every_method_is_measured_on_the_same_objective(counts: np.ndarray) -> None:
    problem = topics(counts)
    chain = topic_chain(problem, iterations=200, burn_in=20)
    runs = (
        variational_topics(problem, max_iter=30),
        gibbs_topics_mode(problem, chain),
        gibbs_topics_best(problem, chain),
    )
    for run in runs:
        assert_evaluated(problem, run)
        assert run.claimed_bound is None
    best = max(token_objective(problem).partition_value(z) for z in chain.labels)
    assert runs[2].refitted.log_map == pytest.approx(best, rel=ROUNDING)


def test_separate_topics_are_found() -> None:
    problem = topics(BLOCKS)
    beta = topic_word_mean(problem, topic_chain(problem, iterations=200, burn_in=20))
    assert sorted(beta[:, :4].sum(axis=1).round(0)) == [0.0, 1.0]


def test_sampler_draws_from_the_posterior() -> None:
    """Frequencies of the assignments of five tokens against p(z | w) with Theta and beta integrated out."""
    problem = topics([[1, 1, 0], [0, 1, 2]], alpha=1.1, eta=1.3)
    chain = topic_chain(problem, iterations=40_000, burn_in=100)
    frequency = np.bincount(chain.labels @ (2 ** np.arange(5)), minlength=32) / len(chain.labels)
    exact = []
    for code in range(32):
        by_document, by_word = token_objective(problem).token_counts([(code >> i) & 1 for i in range(5)])
        value = gammaln(by_document + 1.1).sum() + gammaln(by_word + 1.3).sum()
        exact.append(value - gammaln(by_word.sum(axis=1) + 3 * 1.3).sum())
    probability = np.exp(np.array(exact) - max(exact))
    assert np.abs(frequency - probability / probability.sum()).max() < 0.01


def test_variational_bayes_has_the_same_prior() -> None:
    """Where every document has one topic, q is about the posterior given the tokens; the two priors are far apart."""
    problem = topics(BLOCKS, alpha=3.0, eta=1.2)
    run = variational_topics(problem)
    assert run.returned.assignment is not None
    theta, beta = run.returned.assignment["Theta"], run.returned.assignment["beta"]
    assert theta.max(axis=1) == pytest.approx(np.full(12, (12 + 3.0) / (12 + 6.0)), abs=0.01)
    assert beta.min(axis=1) == pytest.approx(np.full(2, 1.2 / (72 + 8 * 1.2)), rel=0.2)


def test_constraints_are_refused() -> None:
    for problem in (topics(must_link_words=[(0, 1)]), topics(max_topics=1), topics(min_documents=1)):
        with pytest.raises(ValueError, match="takes no constraints"):
            variational_topics(problem)
        with pytest.raises(ValueError, match="takes no constraints"):
            topic_chain(problem)
    with pytest.raises(ValueError, match=r"burn_in must be in 0\.\.9"):
        topic_chain(topics(), iterations=10, burn_in=-1)
