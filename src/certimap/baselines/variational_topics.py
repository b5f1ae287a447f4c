"""Variational Bayes for topics: scikit-learn's LatentDirichletAllocation with the same prior."""

from __future__ import annotations

import time

import numpy as np
from sklearn import config_context
from sklearn.decomposition import LatentDirichletAllocation

from certimap.baselines.run import MethodRun
from certimap.baselines.topic_posterior import check_unconstrained, run_of
from certimap.baselines.variational_mixture import NAME
from certimap.results import StopReason
from certimap.topics.problem import TopicProblem


def variational_topics(problem: TopicProblem, *, n_init: int = 5, max_iter: int = 200, seed: int = 0) -> MethodRun:
    """The best of `n_init` runs by the evidence bound.

    Theta and beta are the means of q; every token is in its most probable topic, argmax_k Theta_dk beta_kv.
    """
    check_unconstrained(problem, NAME)
    cells = problem.cells
    counts = np.zeros((cells.n_documents, cells.n_words))
    counts[cells.document, cells.word] = cells.count
    started = time.perf_counter()
    best: tuple[float, LatentDirichletAllocation] | None = None
    for start in range(n_init):
        model = LatentDirichletAllocation(
            problem.n_topics,
            doc_topic_prior=problem.prior.alpha,
            topic_word_prior=problem.prior.eta,
            learning_method="batch",
            max_iter=max_iter,
            evaluate_every=10,
            random_state=seed + start,
        )
        # scikit-learn's validation admits priors up to 1 only; its updates hold for all positive ones.
        with config_context(skip_parameter_validation=True):
            score = float(model.fit(counts).score(counts))
        if best is None or score > best[0]:
            best = (score, model)
    assert best is not None
    theta = np.asarray(best[1].transform(counts), dtype=np.float64)
    beta = best[1].components_ / best[1].components_.sum(axis=1, keepdims=True)
    labels = np.repeat((theta[cells.document] * beta[:, cells.word].T).argmax(axis=1), cells.count)
    return run_of(
        NAME,
        problem,
        labels.astype(np.int64),
        (theta, beta),
        time.perf_counter() - started,
        stop_reason=StopReason.STALLED if best[1].n_iter_ < max_iter else StopReason.ITERATIONS,
        details={"evidence bound": best[0]},
    )
