"""The posterior of the topic model at any point, tokens of one cell in different topics included.

With n_dk and n_kv tokens of document d and of word v in topic k it is, up to the model's constants,

    sum_dk (n_dk + a) log Theta_dk + sum_kv (n_kv + e) log beta_kv.

Labels are given per token, in the order of the cells (`tokens`): a sampler may put the tokens of one word in one
document into different topics, which certimap's own answer never needs to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from certimap.baselines.run import MethodRun, unbounded
from certimap.results import StopReason
from certimap.topics.objective import Cells, FloatArray, IntArray, TopicObjective
from certimap.topics.problem import TopicProblem


def tokens(cells: Cells) -> tuple[IntArray, IntArray]:
    """Document and word of every token, cell by cell."""
    return np.repeat(cells.document, cells.count), np.repeat(cells.word, cells.count)


def token_objective(problem: TopicProblem) -> TopicObjective:
    """F over topics of the tokens: the objective of a corpus in which every token is a cell of its own."""
    document, word = tokens(problem.cells)
    split = Cells(document, word, np.ones_like(word), problem.cells.n_documents, problem.cells.n_words)
    return TopicObjective(split, problem.prior, problem.n_topics)


def log_density(problem: TopicProblem, labels: ArrayLike, doc_topic: ArrayLike, topic_word: ArrayLike) -> float:
    """The log-posterior of topics of the tokens, Theta (D, K) and beta (K, V)."""
    by_document, by_word = token_objective(problem).token_counts(labels)
    value = xlogy(by_document + problem.prior.a, np.asarray(doc_topic)).sum()
    return float(value + xlogy(by_word + problem.prior.e, np.asarray(topic_word)).sum())


def run_of(
    name: str,
    problem: TopicProblem,
    labels: IntArray,
    parameters: tuple[FloatArray, FloatArray],
    seconds: float,
    *,
    stop_reason: StopReason = StopReason.ITERATIONS,
    details: dict[str, object] | None = None,
) -> MethodRun:
    """A point of the posterior as returned, and the same labels of the tokens with optimal parameters."""
    returned = {"z": labels, "Theta": parameters[0], "beta": parameters[1]}
    objective = token_objective(problem)
    best = objective.parameters(labels)
    refitted = {"z": labels, "Theta": best.doc_topic, "beta": best.topic_word}
    return MethodRun(
        name,
        unbounded(returned, log_density(problem, labels, *parameters), stop_reason),
        unbounded(refitted, objective.partition_value(labels), stop_reason),
        seconds,
        details=details,
    )


def check_unconstrained(problem: TopicProblem, method: str) -> None:
    """Refuse constraints that the method would leave out."""
    constrained = (
        len(problem.must_links)
        or len(problem.conflict_words)
        or (problem.fixed >= 0).any()
        or problem.max_topics < problem.n_topics
        or problem.min_documents > 0
        or len(problem.soft_pairs)
        or len(problem.wish_items)
    )
    if constrained:
        raise ValueError(f"{method} takes no constraints, got a problem with some.")
