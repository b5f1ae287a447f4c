"""How far clusterings, topics and predictions agree.

Clusterings are label arrays of equal length; the numbers in them are only names, nothing depends on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse
from scipy.special import xlogy

from certimap._numeric.jit import entry

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DOCUMENTS_AT_ONCE = 1000


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


def held_out_log_likelihood(counts: Any, doc_topic: ArrayLike, topic_word: ArrayLike) -> float:
    """sum_d sum_v n_dv log sum_k Theta_dk beta_kv: natural logarithm, -inf if a word that occurs has no probability.

    The counts may be sparse; probabilities are computed for the words that occur.
    """
    theta, beta = np.asarray(doc_topic, dtype=np.float64), np.asarray(topic_word, dtype=np.float64)
    n = _sparse(counts)
    if n.shape != (len(theta), beta.shape[1]):
        raise ValueError(
            f"counts must have the shape {(len(theta), beta.shape[1])} of Theta @ beta, got {tuple(n.shape)}."
        )
    words = np.ascontiguousarray(beta.T)
    total = 0.0
    for first in range(0, len(theta), DOCUMENTS_AT_ONCE):
        rows = n[first : first + DOCUMENTS_AT_ONCE]
        document = first + np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        total += float(xlogy(rows.data, (theta[document] * words[rows.indices]).sum(axis=1)).sum())
    return total


def fold_in(
    counts: Any, topic_word: ArrayLike, doc_topic_prior: float, sweeps: int = 1000, tolerance: float = 1e-6
) -> FloatArray:
    """Theta of new documents at given topics, the topics of their tokens summed out.

    argmax over Theta of sum_v n_v log sum_k Theta_k beta_kv + (alpha-1) sum_k log Theta_k. For alpha >= 1 this is
    concave, and expectation-maximisation climbs to the maximum from the uniform mixture. A document is done when no
    share changes by more than the tolerance. The counts may be sparse; the work is proportional to the words that
    occur.
    """
    beta = np.asarray(topic_word, dtype=np.float64)
    if not doc_topic_prior >= 1.0:
        raise ValueError(f"doc_topic_prior must be at least 1, got {doc_topic_prior!r}: else there is no maximum.")
    n = _sparse(counts)
    if n.shape[1] != beta.shape[1]:
        raise ValueError(f"counts must have one column for each of the {beta.shape[1]} words, got {n.shape[1]}.")
    theta = np.full((n.shape[0], len(beta)), 1.0 / len(beta))
    start, word = n.indptr.astype(np.int64), n.indices.astype(np.int64)
    _fold_in(start, word, n.data, np.ascontiguousarray(beta.T), doc_topic_prior - 1.0, sweeps, tolerance, theta)
    return theta


@entry
def _fold_in(
    start: IntArray,
    word: IntArray,
    count: FloatArray,
    words: FloatArray,
    pseudo_tokens: float,
    sweeps: int,
    tolerance: float,
    theta: FloatArray,
) -> None:
    """Expectation-maximisation for every document; `words` holds beta with a row for each word."""
    K = theta.shape[1]
    updated = np.empty(K)
    for d in range(len(theta)):
        share = theta[d]
        for _ in range(sweeps):
            updated[:] = pseudo_tokens
            total = K * pseudo_tokens
            for c in range(start[d], start[d + 1]):
                beta = words[word[c]]
                mixture = 0.0
                for k in range(K):
                    mixture += share[k] * beta[k]
                if mixture > 0.0:
                    for k in range(K):
                        updated[k] += count[c] * share[k] * beta[k] / mixture
                    total += count[c]
            if total <= 0.0:
                break  # nothing is known about the document
            change = 0.0
            for k in range(K):
                change = max(change, abs(updated[k] / total - share[k]))
                share[k] = updated[k] / total
            if change <= tolerance:
                break


def halves(counts: Any, seed: int = 0) -> tuple[csr_array, csr_array]:
    """The tokens of every document dealt at random into two halves, the first with the odd token.

    For document completion: Theta of a document comes from its first half, and the second half is predicted.
    """
    whole = _sparse(counts)
    rng = np.random.default_rng(seed)
    first = np.zeros(len(whole.data))
    for d in range(whole.shape[0]):
        own = slice(whole.indptr[d], whole.indptr[d + 1])
        tokens = whole.data[own].astype(np.int64)
        first[own] = rng.multivariate_hypergeometric(tokens, -(-int(tokens.sum()) // 2), method="marginals")
    parts = []
    for data in (first, whole.data - first):
        part = csr_array((data, whole.indices.copy(), whole.indptr.copy()), shape=whole.shape)
        part.eliminate_zeros()
        parts.append(part)
    return parts[0], parts[1]


def perplexity(counts: Any, doc_topic: ArrayLike, topic_word: ArrayLike) -> float:
    """exp(-log likelihood / tokens): V for a uniform guess among V words, 1 for certainty."""
    tokens = float(_sparse(counts).sum())
    if tokens <= 0.0:
        raise ValueError("counts must hold at least one token, got none.")
    return float(np.exp(-held_out_log_likelihood(counts, doc_topic, topic_word) / tokens))


def _sparse(counts: Any) -> csr_array:
    """Dense or sparse counts as rows of their nonzero entries."""
    given: Any = counts if issparse(counts) else np.asarray(counts)
    rows: Any = csr_array(given)
    return csr_array(rows.astype(np.float64))


def top_words(topic_word: ArrayLike, words: Sequence[str], n: int = 10) -> list[list[str]]:
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
