"""Value of a topic and of an assignment of cells to topics, Theta and beta maximised out in closed form.

The counts are a matrix with D documents and V words; its nonzero entries are the cells c = (d, v) with n_c tokens. With
a = alpha-1, e = eta-1, phi(x) = x log x and the tokens n_dk of document d in topic k, n_kv of word v in topic k,
n_k in topic k, N_d in document d, the log-density

    sum_c n_c (log Theta_{d, z_c} + log beta_{z_c, v}) + a sum_dk log Theta_dk + e sum_kv log beta_kv

is at its maximum at Theta_dk = (n_dk + a)/(N_d + K a), beta_kv = (n_kv + e)/(n_k + V e), where it is

    F(z) = sum_k c(S_k) - sum_d phi(N_d + K a),
    c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a),

summed over all words and documents, so that an empty topic is worth c(empty) = (V phi(e) - phi(V e)) + D phi(a).

**Whole cells suffice.** Let x_ck >= 0, sum_k x_ck = n_c, be tokens of cell c in topic k, so that cells may be split. At
fixed Theta and beta the log-density is linear in x; F is its maximum over Theta and beta, hence convex in x. A convex
function on a product of simplices is largest at a vertex, where every cell is in one topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from certimap.topics.prior import TopicPrior

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The nonzero counts, ordered by document and then word.

    Attributes:
        document, word, count: d, v and n_c of every cell, shape (C,).
        n_documents, n_words: D and V, empty documents and words that do not occur included.
    """

    document: IntArray
    word: IntArray
    count: IntArray
    n_documents: int
    n_words: int

    def __post_init__(self) -> None:
        for array in (self.document, self.word, self.count):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True, eq=False)
class TopicParameters:
    """MAP parameters of an assignment: Theta (D, K) and beta (K, V), every row a distribution."""

    doc_topic: FloatArray
    topic_word: FloatArray


@dataclass(frozen=True, eq=False)
class TopicObjective:
    """F and c(S) for given cells, prior and number of topics."""

    cells: Cells
    prior: TopicPrior
    n_topics: int

    @property
    def constant(self) -> float:
        """-sum_d phi(N_d + K a), the part of F that is the same for every assignment."""
        tokens = np.bincount(self.cells.document, weights=self.cells.count, minlength=self.cells.n_documents)
        return -float(_phi(tokens + self.n_topics * self.prior.a).sum())

    def value(self, members: Sequence[int] | IntArray | NDArray[np.bool_]) -> float:
        """c(S) of the topic with these cells, given by their positions or by a mask."""
        chosen = np.asarray(members)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        cells, count = self.cells, self.cells.count[chosen]
        by_document = np.bincount(cells.document[chosen], weights=count, minlength=cells.n_documents)
        by_word = np.bincount(cells.word[chosen], weights=count, minlength=cells.n_words)
        total = float(_phi(count.sum() + cells.n_words * self.prior.e))
        return float(_phi(by_word + self.prior.e).sum()) - total + float(_phi(by_document + self.prior.a).sum())

    def partition_value(self, labels: ArrayLike) -> float:
        """F of topics of the cells."""
        document_topic, topic_word = self.token_counts(labels)
        value = _phi(document_topic + self.prior.a).sum() + _phi(topic_word + self.prior.e).sum()
        value -= _phi(topic_word.sum(axis=1) + self.cells.n_words * self.prior.e).sum()
        return float(value) + self.constant

    def parameters(self, labels: ArrayLike) -> TopicParameters:
        """The Theta and beta that are optimal for topics of the cells; uniform where every choice is."""
        document_topic, topic_word = self.token_counts(labels)
        theta = normalised(np.asarray(document_topic + self.prior.a))
        return TopicParameters(theta, normalised(np.asarray(topic_word + self.prior.e)))

    def token_counts(self, labels: ArrayLike) -> tuple[IntArray, IntArray]:
        """n_dk, shape (D, K), and n_kv, shape (K, V)."""
        cells, K = self.cells, self.n_topics
        z = np.asarray(labels, dtype=np.int64)
        by_document = np.bincount(cells.document * K + z, weights=cells.count, minlength=cells.n_documents * K)
        by_word = np.bincount(z * cells.n_words + cells.word, weights=cells.count, minlength=K * cells.n_words)
        return (
            by_document.reshape(cells.n_documents, K).astype(np.int64),
            by_word.reshape(K, cells.n_words).astype(np.int64),
        )


def _phi(x: Any) -> FloatArray:
    return np.asarray(xlogy(x, x), dtype=np.float64)


def normalised(rows: FloatArray) -> FloatArray:
    """Rows that sum to one; uniform where a row is zero."""
    total = rows.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, rows / np.where(total > 0.0, total, 1.0), 1.0 / rows.shape[1])
