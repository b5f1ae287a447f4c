"""Corpora drawn from 20 Newsgroups, which scikit-learn keeps in its data folder (SCIKIT_LEARN_DATA names another)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from certimap.experiments.corpus import TOKEN, newsgroups

LEAST_DOCUMENTS = 20  # of a word
DOCUMENT_TOKENS = (20, 2000)  # of all words, so that neither empty nor endless documents are drawn
SHORTEST, LONGEST = 2, 200  # tokens of a document's chosen words
SPARE = 6  # documents drawn for each one wanted
MOST_ROUNDS = 20


def draw(n_documents: int, n_words: int, seed: int) -> NDArray[np.int64]:
    """Random documents and the words that are most frequent in them; unsuitable documents are replaced."""
    counts = _all_counts(LEAST_DOCUMENTS, None)
    tokens = np.asarray(counts.sum(axis=1)).ravel()
    suitable = np.flatnonzero((tokens >= DOCUMENT_TOKENS[0]) & (tokens <= DOCUMENT_TOKENS[1]))
    drawn = np.random.default_rng(seed).choice(suitable, size=min(len(suitable), SPARE * n_documents), replace=False)
    chosen, spare = drawn[:n_documents].copy(), iter(drawn[n_documents:])
    for _ in range(MOST_ROUNDS):
        frequency = np.asarray(counts[chosen].sum(axis=0)).ravel()
        words = np.sort(np.argsort(-frequency, kind="stable")[:n_words])
        left = np.asarray(counts[chosen][:, words].sum(axis=1)).ravel()
        unsuitable = np.flatnonzero((left < SHORTEST) | (left > LONGEST))
        if not len(unsuitable):
            break
        for row in unsuitable:
            chosen[row] = next(spare, chosen[row])
    dense = counts[chosen][:, words].toarray().astype(np.int64)
    return dense[dense.sum(axis=1) > 0]


def whole(n_words: int) -> csr_array:
    """All documents and the most frequent words."""
    return _all_counts(1, n_words)


@lru_cache(maxsize=2)
def _all_counts(least_documents: int, n_words: int | None) -> csr_array:
    vectorizer = CountVectorizer(
        stop_words="english", token_pattern=TOKEN, min_df=least_documents, max_features=n_words
    )
    return csr_array(vectorizer.fit_transform(newsgroups(None)))
