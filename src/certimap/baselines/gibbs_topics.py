"""The collapsed Gibbs sampler of the topic model (Griffiths and Steyvers), and points read off its samples.

Theta and beta are integrated out; a token of word v in document d, itself left out of the counts, moves to topic k with
probability proportional to (n_dk + alpha) (n_kv + eta) / (n_k + V eta).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from certimap._numeric.jit import entry
from certimap.baselines.run import MethodRun
from certimap.baselines.topic_posterior import check_unconstrained, run_of, tokens
from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.problem import TopicProblem

NAME = "collapsed Gibbs sampler"
ITERATIONS = 1000
BURN_IN = 100


@dataclass(frozen=True, eq=False)
class TopicChain:
    """Samples after the burn-in: topics of the tokens (T, tokens) and the counts n_dk (T, D, K), n_kv (T, K, V)."""

    labels: IntArray
    by_document: IntArray
    by_word: IntArray
    seconds: float


def topic_chain(
    problem: TopicProblem, *, iterations: int = ITERATIONS, burn_in: int = BURN_IN, seed: int = 0
) -> TopicChain:
    """Sample topics of the tokens from uniformly drawn ones."""
    check_unconstrained(problem, NAME)
    if not 0 <= burn_in < iterations:
        raise ValueError(f"burn_in must be in 0..{iterations - 1}, got {burn_in}: no sample would be left.")
    document, word = tokens(problem.cells)
    D, V, K = problem.cells.n_documents, problem.cells.n_words, problem.n_topics
    by_document = np.zeros((iterations, D, K), dtype=np.int64)
    by_word = np.zeros((iterations, K, V), dtype=np.int64)
    labels = np.zeros((iterations, len(word)), dtype=np.int64)
    out = (labels, by_document, by_word)
    prior = (float(problem.prior.alpha), float(problem.prior.eta))

    def sweep(sweeps: int) -> None:
        rng = np.random.default_rng(seed)
        _sweep(document, word, rng.integers(K, size=len(word)), *prior, sweeps, rng, out)

    sweep(1)  # compiles, so that the time is the sampler's
    started = time.perf_counter()
    sweep(iterations)
    seconds = time.perf_counter() - started
    return TopicChain(labels[burn_in:], by_document[burn_in:], by_word[burn_in:], seconds)


def gibbs_topics_mode(problem: TopicProblem, chain: TopicChain) -> MethodRun:
    """Every token in its most frequent topic; Theta and beta are the means of the samples' estimates."""
    counts = np.stack([(chain.labels == k).sum(axis=0) for k in range(problem.n_topics)])
    parameters = (doc_topic_mean(problem, chain), topic_word_mean(problem, chain))
    return run_of("Gibbs, mode", problem, counts.argmax(axis=0).astype(np.int64), parameters, chain.seconds)


def gibbs_topics_best(problem: TopicProblem, chain: TopicChain) -> MethodRun:
    """The sample whose topics have the largest posterior density, with its estimates of Theta and beta."""
    prior, V = problem.prior, problem.cells.n_words
    shifted = [chain.by_document + prior.a, chain.by_word + prior.e]
    totals = chain.by_word.sum(axis=2) + V * prior.e
    values = sum(xlogy(n, n).sum(axis=(1, 2)) for n in shifted) - xlogy(totals, totals).sum(axis=1)
    t = int(values.argmax())
    theta = _means(chain.by_document[t], prior.alpha)
    beta = _means(chain.by_word[t], prior.eta)
    return run_of("Gibbs, best sample", problem, chain.labels[t].copy(), (theta, beta), chain.seconds)


def doc_topic_mean(problem: TopicProblem, chain: TopicChain) -> FloatArray:
    """The mean over samples of (n_dk + alpha) / (N_d + K alpha)."""
    return np.asarray(_means(chain.by_document, problem.prior.alpha).mean(axis=0))


def topic_word_mean(problem: TopicProblem, chain: TopicChain) -> FloatArray:
    """The mean over samples of (n_kv + eta) / (n_k + V eta)."""
    return np.asarray(_means(chain.by_word, problem.prior.eta).mean(axis=0))


def _means(counts: IntArray, concentration: float) -> FloatArray:
    smoothed = counts + concentration
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True), dtype=np.float64)


@entry
def _sweep(document: Any, word: Any, z: Any, alpha: float, eta: float, iterations: int, rng: Any, out: Any) -> None:
    """Sweep over all tokens `iterations` times; `out` = (labels, n_dk, n_kv), one entry per sweep."""
    labels, by_document, by_word = out
    _, D, K = by_document.shape
    V = by_word.shape[2]
    n_dk, n_kv, n_k = np.zeros((D, K), np.int64), np.zeros((K, V), np.int64), np.zeros(K, np.int64)
    for i in range(len(z)):
        n_dk[document[i], z[i]] += 1
        n_kv[z[i], word[i]] += 1
        n_k[z[i]] += 1
    cumulated = np.zeros(K)
    for t in range(iterations):
        for i in range(len(z)):
            d, v, k = document[i], word[i], z[i]
            n_dk[d, k] -= 1
            n_kv[k, v] -= 1
            n_k[k] -= 1
            total = 0.0
            for j in range(K):
                total += (n_dk[d, j] + alpha) * (n_kv[j, v] + eta) / (n_k[j] + V * eta)
                cumulated[j] = total
            left = rng.random() * total
            k = 0
            while k < K - 1 and cumulated[k] <= left:
                k += 1
            z[i] = k
            n_dk[d, k] += 1
            n_kv[k, v] += 1
            n_k[k] += 1
        labels[t] = z
        by_document[t] = n_dk
        by_word[t] = n_kv
