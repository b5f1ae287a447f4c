"""The topic model's methods on a corpus, as tasks."""

from __future__ import annotations

import hashlib
import time
from functools import cache
from typing import Any

import numpy as np

from certimap.baselines.gibbs_topics import (
    BURN_IN,
    ITERATIONS,
    gibbs_topics_best,
    gibbs_topics_mode,
    topic_chain,
    topic_word_mean,
)
from certimap.baselines.scip import NAME as BRANCH_AND_BOUND
from certimap.baselines.scip import apart
from certimap.baselines.scip_topics import scip_topics
from certimap.baselines.variational_topics import variational_topics
from certimap.experiments.corpus import Corpus
from certimap.experiments.methods import OURS
from certimap.experiments.mixture_tasks import Effort
from certimap.experiments.tasks import Task, record_of_result, record_of_run
from certimap.results import Callback
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.solve import TopicAlgorithm, solve_topics

PRIOR = TopicPrior(1.1, 1.1)  # the paper does not print its own
STARTS = 10  # of certimap's search: each is long
VARIATIONAL_RUNS = 3


def topic_problem(corpus: Corpus, n_topics: int) -> TopicProblem:
    """The topic model of a corpus, under the prior of all these experiments."""
    return TopicProblem.from_counts(corpus.counts, PRIOR, n_topics, word_names=corpus.words)


def topic_certimap_task(corpus: Corpus, n_topics: int, effort: Effort, algorithm: TopicAlgorithm = "auto") -> Task:
    """Search and proof, or the search alone."""

    def compute(callback: Callback) -> Any:
        warm_up(algorithm)
        problem = topic_problem(corpus, n_topics)
        started = time.perf_counter()
        result = solve_topics(
            problem,
            tol=effort.tol,
            time_limit=effort.seconds,
            n_init=STARTS,
            seed=effort.seed,
            algorithm=algorithm,
            callback=callback,
        )
        seconds = time.perf_counter() - started
        if result.assignment is None:
            return {"records": [record_of_result(OURS, result, seconds, None)]}
        by_word = problem.objective.token_counts(result.assignment["z"])[1]
        smoothed = by_word + PRIOR.eta
        labels = np.repeat(result.assignment["z"], problem.cells.count).tolist()
        return {
            "records": [record_of_result(OURS, result, seconds, labels)],
            "topic_word": result.assignment["beta"].tolist(),
            "smoothed": (smoothed / smoothed.sum(axis=1, keepdims=True)).tolist(),
            "tokens": by_word.sum(axis=1).tolist(),
        }

    parameters = {**_corpus_key(corpus, n_topics), **vars(effort), "starts": STARTS, "algorithm": algorithm}
    return Task("topics-certimap", parameters, f"certimap on {_name(corpus)}", compute, compiled=True)


def topic_branch_and_bound_task(corpus: Corpus, n_topics: int, effort: Effort) -> Task:
    """SCIP."""

    def compute(callback: Callback) -> Any:
        return record_of_run(apart(scip_topics, topic_problem(corpus, n_topics), effort.seconds))

    parameters = {**_corpus_key(corpus, n_topics), "seconds": effort.seconds}
    return Task("topics-scip", parameters, f"{BRANCH_AND_BOUND} on {_name(corpus)}", compute)


def topic_variational_task(corpus: Corpus, n_topics: int, effort: Effort) -> Task:
    """Variational Bayes, and the means of its topics."""

    def compute(callback: Callback) -> Any:
        run = variational_topics(topic_problem(corpus, n_topics), n_init=VARIATIONAL_RUNS, seed=effort.seed)
        point = run.returned.assignment or {}
        return {"records": [record_of_run(run)], "topic_word": point["beta"].tolist()}

    parameters = {**_corpus_key(corpus, n_topics), "seed": effort.seed, "runs": VARIATIONAL_RUNS}
    return Task("topics-variational", parameters, f"variational Bayes on {_name(corpus)}", compute)


def topic_gibbs_task(corpus: Corpus, n_topics: int, effort: Effort) -> Task:
    """One chain: the mode, the best sample, and the mean of its topics."""

    def compute(callback: Callback) -> Any:
        problem = topic_problem(corpus, n_topics)
        chain = topic_chain(problem, seed=effort.seed)
        return {
            "records": [record_of_run(read(problem, chain)) for read in (gibbs_topics_mode, gibbs_topics_best)],
            "topic_word": topic_word_mean(problem, chain).tolist(),
        }

    parameters = {**_corpus_key(corpus, n_topics), "seed": effort.seed, "iterations": ITERATIONS, "burn_in": BURN_IN}
    return Task("topics-gibbs", parameters, f"collapsed Gibbs sampler on {_name(corpus)}", compute, compiled=True)


@cache
def warm_up(algorithm: TopicAlgorithm = "auto") -> None:
    """Compile what a solve needs, so that its limit and its seconds are those of the search and the proof."""
    counts = np.array([[2, 1, 0, 1], [0, 1, 2, 1], [1, 0, 1, 2]])
    solve_topics(TopicProblem.from_counts(counts, PRIOR, 2), n_init=2, algorithm=algorithm)


def _corpus_key(corpus: Corpus, n_topics: int) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(corpus.counts, dtype="<i8").tobytes()).hexdigest()
    shape = list(corpus.counts.shape)
    return {"counts": digest, "shape": shape, "topics": n_topics, "alpha": PRIOR.alpha, "eta": PRIOR.eta}


def _name(corpus: Corpus) -> str:
    documents, words = corpus.counts.shape
    return f"{documents} documents of {words} words"
