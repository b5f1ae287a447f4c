"""Held-out documents, one half of which predicts the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.experiments.corpus import Corpus
from certimap.metrics import fold_in, halves, held_out_log_likelihood

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Documents to learn topics from, and the halves of the others."""

    train: Corpus
    seen: IntArray
    hidden: IntArray

    def score(self, topic_word: ArrayLike, doc_topic_prior: float) -> dict[str, Any]:
        """Log-likelihood and perplexity of the hidden halves, the mixtures folded in from the seen ones."""
        theta = fold_in(self.seen, topic_word, doc_topic_prior)
        value = held_out_log_likelihood(self.hidden, theta, topic_word)
        tokens = int(self.hidden.sum())
        return {"log_likelihood": value, "tokens": tokens, "perplexity": float(np.exp(-value / tokens))}


def split_corpus(corpus: Corpus, n_held_out: int, seed: int) -> Split:
    """Random documents held out, their tokens dealt into two halves at random."""
    if not 1 <= n_held_out < len(corpus.counts):
        raise ValueError(f"n_held_out must be in 1..{len(corpus.counts) - 1}, got {n_held_out}.")
    order = np.random.default_rng(seed).permutation(len(corpus.counts))
    test, train = corpus.counts[order[:n_held_out]], corpus.counts[order[n_held_out:]]
    seen, hidden = (np.asarray(half.todense(), dtype=np.int64) for half in halves(test, seed))
    description = f"{len(train)} of the documents to learn from, {n_held_out} held out"
    return Split(Corpus(train, corpus.words, description), seen, hidden)


def unigram(train: ArrayLike, topic_word_prior: float) -> NDArray[np.float64]:
    """One topic for all documents: the words' frequencies."""
    totals = np.asarray(train, dtype=np.float64).sum(axis=0) + topic_word_prior
    return np.asarray(totals / totals.sum(), dtype=np.float64)[None, :]
