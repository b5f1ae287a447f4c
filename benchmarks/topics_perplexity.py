"""Perplexity of topics on held-out documents, against variational Bayes and Gibbs sampling.

300 documents, 150 words, 5 topics; 30 documents are held out, the topics of their words inferred from one half of their
tokens and the other half predicted. Every method may try the same number of settings: each is fitted without another 30
documents and judged on these, and the best one is fitted again with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import tomotopy
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.decomposition import LatentDirichletAllocation

from benchmarks import newsgroups
from certimap.metrics import fold_in, halves, perplexity
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.search.multistart import search

DOCUMENTS, WORDS, TOPICS, HELD_OUT, DRAWS = 300, 150, 5, 30, 10
# Each with as many settings. Priors of the peers: documents, words; ours: smoothing of documents and of words.
VARIATIONAL = [(alpha, eta) for alpha in (0.2, 0.5, 1.0, 2.0) for eta in (0.2, 1.0, 2.0)]
GIBBS = [(alpha, eta) for alpha in (0.2, 0.5, 1.0, 2.0) for eta in (0.05, 0.2, 1.0)]
PRIORS = [(1.1, 1.1), (1.1, 2.0), (2.0, 2.0)]  # settings that did well on draws besides those below
SMOOTHING = [(0.2, 2.0), (0.2, 4.0), (0.5, 2.0), (0.5, 4.0)]
OURS = [(prior, *smoothing) for prior in PRIORS for smoothing in SMOOTHING]
GIBBS_SWEEPS, GIBBS_SAMPLES = 1000, 10
VARIATIONAL_STARTS, VARIATIONAL_SWEEPS = 2, 150
STARTS = 3
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Predict = Callable[[Counts], tuple[Floats, Floats]]  # first halves: topics of documents, words of topics
Fit = Callable[[Counts, Any, int], Predict]


def perplexities() -> Iterable[str]:
    """Means and standard errors over the draws, and of the differences to ours."""
    methods = {
        "ours": (_ours, OURS),
        "variational Bayes": (_variational, VARIATIONAL),
        "Gibbs": (_gibbs, GIBBS),
    }
    found = {
        name: np.array([_tuned(fit, grid, seed) for seed in range(DRAWS)]) for name, (fit, grid) in methods.items()
    }
    found["unigram"] = np.array([_tuned(_unigram, [(0.1,)], seed) for seed in range(DRAWS)])
    parts = []
    for name, values in found.items():
        lead = "" if name == "ours" else f", {_mean(values - found['ours'])} more than ours"
        parts.append(f"{name} {_mean(values)}{lead}")
    size = f"{DOCUMENTS}x{WORDS}x{TOPICS}, {DRAWS} draws, {len(OURS)} settings each"
    yield f"topics perplexity {size}: {' | '.join(parts)}"


def _mean(values: Floats) -> str:
    return f"{values.mean():.2f} +- {values.std(ddof=1) / np.sqrt(len(values)):.2f}"


def _tuned(fit: Fit, grid: Sequence[Any], seed: int) -> float:
    """Perplexity of the test documents at the setting that is best for the documents of validation."""
    counts = newsgroups.draw(DOCUMENTS, WORDS, seed)
    counts = counts[np.random.default_rng(seed).permutation(len(counts))]
    test, validation, rest = counts[:HELD_OUT], counts[HELD_OUT : 2 * HELD_OUT], counts[2 * HELD_OUT :]
    if len(grid) == 1:
        best = grid[0]
    else:
        best = min(grid, key=lambda setting: _completion(fit(rest, setting, seed), validation, seed))
    return _completion(fit(counts[HELD_OUT:], best, seed), test, seed)


def _completion(predict: Predict, documents: Counts, seed: int) -> float:
    first, second = (np.asarray(part.todense()) for part in halves(documents[documents.sum(axis=1) > 1], seed))
    return perplexity(second, *predict(first))


def _ours(counts: Counts, setting: tuple[tuple[float, float], float, float], seed: int) -> Predict:
    """The MAP topics, smoothed; topics of new documents summed out, as LatentDirichletMAP does."""
    prior, of_documents, of_words = setting
    words = _map_words(counts.tobytes(), counts.shape, prior, seed) + of_words
    beta = words / words.sum(axis=1, keepdims=True)
    return lambda first: (fold_in(first, beta, 1.0 + of_documents), beta)


@lru_cache(maxsize=16)
def _map_words(tokens: bytes, shape: tuple[int, int], prior: tuple[float, float], seed: int) -> Floats:
    """Tokens of the words in the MAP topics; settings that differ in smoothing alone share them."""
    counts = np.frombuffer(tokens, dtype=np.int64).reshape(shape)
    problem = TopicProblem.from_counts(counts, TopicPrior(*prior), TOPICS)
    labels = search(problem, STARTS, seed).labels
    assert labels is not None
    return problem.objective.token_counts(problem.cell_labels(labels))[1].astype(float)


def _variational(counts: Counts, setting: tuple[float, ...], seed: int) -> Predict:
    """scikit-learn, the start with the larger evidence bound; its own inference for new documents."""
    alpha, eta = setting
    best, score = None, -np.inf
    with config_context(skip_parameter_validation=True):
        for start in range(VARIATIONAL_STARTS):
            model = LatentDirichletAllocation(
                TOPICS, doc_topic_prior=alpha, topic_word_prior=eta, max_iter=VARIATIONAL_SWEEPS, random_state=start
            ).fit(counts)
            if best is None or model.score(counts) > score:
                best, score = model, model.score(counts)
    beta = best.components_ / best.components_.sum(axis=1, keepdims=True)

    def predict(first: Counts) -> tuple[Floats, Floats]:
        with config_context(skip_parameter_validation=True):
            return best.transform(first), beta

    return predict


def _gibbs(counts: Counts, setting: tuple[float, ...], seed: int) -> Predict:
    """tomotopy, topics averaged over samples of the second half of the chain; the same inference as ours."""
    alpha, eta = setting
    model = tomotopy.LDAModel(k=TOPICS, alpha=alpha, eta=eta, seed=seed)
    model.optim_interval = 0
    for row in counts:
        model.add_doc([str(v) for v in np.repeat(np.arange(len(row)), row)])
    model.train(GIBBS_SWEEPS // 2, workers=1)
    beta = np.full((TOPICS, counts.shape[1]), 1e-12)  # tomotopy knows only the words that occur
    known = np.array([int(word) for word in model.used_vocabs])
    for _ in range(GIBBS_SAMPLES):
        model.train(GIBBS_SWEEPS // 2 // GIBBS_SAMPLES, workers=1)
        beta[:, known] += np.array([model.get_topic_word_dist(k) for k in range(TOPICS)])
    beta /= beta.sum(axis=1, keepdims=True)
    return lambda first: (fold_in(first, beta, 1.0 + alpha), beta)


def _unigram(counts: Counts, setting: tuple[float, ...], seed: int) -> Predict:
    """One topic."""
    words = counts.sum(axis=0) + setting[0]
    beta = (words / words.sum())[None, :]
    return lambda first: (np.ones((len(first), 1)), beta)
