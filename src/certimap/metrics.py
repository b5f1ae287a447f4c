"""How far clusterings, topics and predictions agree.

Clusterings are label arrays of equal length; the numbers in them are only names, nothing depends on their order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def variation_of_information(a: ArrayLike, b: ArrayLike) -> float:
    """VoI(C, C') = H(C) + H(C') - 2 I(C, C') in nats: 0 for equal clusterings, at most 2 log max(K, K')."""
    joint = contingency(a, b) / np.size(a)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    # H(C) + H(C') - 2 I = H(C | C') + H(C' | C), a sum of non-negative terms that does not cancel.
    given_rows = xlogy(joint, np.divide(rows[:, None], joint, out=np.ones_like(joint), where=joint > 0.0))
    given_columns = xlogy(joint, np.divide(columns[None, :], joint, out=np.ones_like(joint), where=joint > 0.0))
    return float(given_rows.sum() + given_columns.sum())


def matched_agreement(a: ArrayLike, b: ArrayLike) -> float:
    """Share of points that agree once the clusters of `a` are matched with those of `b`, each at most once."""
    counts = contingency(a, b)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum()) / np.size(a)


def contingency(a: ArrayLike, b: ArrayLike) -> IntArray:
    """How many points are in each pair of clusters, shape (clusters of a, clusters of b)."""
    first, second = np.asarray(a), np.asarray(b)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise ValueError(
            f"two clusterings must be label arrays of one length > 0, got the shapes {first.shape} and {second.shape}."
        )
    rows, i = np.unique(first, return_inverse=True)
    columns, j = np.unique(second, return_inverse=True)
    counts = np.bincount(i * len(columns) + j, minlength=len(rows) * len(columns))
    return counts.reshape(len(rows), len(columns)).astype(np.int64)


def held_out_log_likelihood(counts: ArrayLike, doc_topic: ArrayLike, topic_word: ArrayLike) -> float:
    """sum_d sum_v n_dv log sum_k Theta_dk beta_kv: natural logarithm, -inf if a word that occurs has no probability."""
    n = np.asarray(counts, dtype=np.float64)
    probability = np.asarray(doc_topic, dtype=np.float64) @ np.asarray(topic_word, dtype=np.float64)
    if n.shape != probability.shape:
        raise ValueError(f"counts must have the shape {probability.shape} of Theta @ beta, got {n.shape}.")
    return float(xlogy(n, probability).sum())


def fold_in(counts: ArrayLike, topic_word: ArrayLike, doc_topic_prior: float, sweeps: int = 500) -> FloatArray:
    """Theta of new documents at given topics, the topics of their tokens summed out.

    argmax over Theta of sum_v n_v log sum_k Theta_k beta_kv + (alpha-1) sum_k log Theta_k. For alpha >= 1 this is
    concave, and expectation-maximisation climbs to the maximum from the uniform mixture.
    """
    n, beta = np.asarray(counts, dtype=np.float64), np.asarray(topic_word, dtype=np.float64)
    if not doc_topic_prior >= 1.0:
        raise ValueError(f"doc_topic_prior must be at least 1, got {doc_topic_prior!r}: else there is no maximum.")
    theta = np.full((len(n), len(beta)), 1.0 / len(beta))
    for _ in range(sweeps):
        mixture = theta @ beta
        responsible = theta * (np.divide(n, mixture, out=np.zeros_like(n), where=n > 0.0) @ beta.T)
        updated = responsible + (doc_topic_prior - 1.0)
        total = updated.sum(axis=1, keepdims=True)
        theta = np.where(total > 0.0, updated / np.where(total > 0.0, total, 1.0), theta)
    return theta


def perplexity(counts: ArrayLike, doc_topic: ArrayLike, topic_word: ArrayLike) -> float:
    """exp(-log likelihood / tokens): V for a uniform guess among V words, 1 for certainty."""
    tokens = float(np.asarray(counts).sum())
    if tokens <= 0.0:
        raise ValueError("counts must hold at least one token, got none.")
    return float(np.exp(-held_out_log_likelihood(counts, doc_topic, topic_word) / tokens))


def top_words(topic_word: ArrayLike, words: list[str], n: int = 10) -> list[list[str]]:
    """The `n` most probable words of every topic; of equal ones the first in the vocabulary."""
    beta = np.asarray(topic_word, dtype=np.float64)
    if beta.ndim != 2 or beta.shape[1] != len(words):
        raise ValueError(f"topic_word must have one column for each of the {len(words)} words, got {beta.shape}.")
    return [[words[v] for v in np.argsort(-row, kind="stable")[:n]] for row in beta]


def match_topics(reference: ArrayLike, topic_word: ArrayLike) -> IntArray:
    """For every topic of the reference the topic that it is matched with, shape (K,).

    The matching is one to one and makes the summed overlap sum_v min(beta_kv, beta'_k'v) as large as possible.
    """
    first, second = np.asarray(reference, dtype=np.float64), np.asarray(topic_word, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(f"topics must have equal shapes (K, V), got {first.shape} and {second.shape}.")
    overlap = np.minimum(first[:, None, :], second[None, :, :]).sum(axis=2)
    return np.asarray(linear_sum_assignment(overlap, maximize=True)[1], dtype=np.int64)
