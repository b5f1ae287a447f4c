"""Small corpora drawn from a collection of texts: random documents and their most frequent words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer

LEAST_TOKENS = 2  # of a document, so that it has two halves
MOST_ROUNDS = 50
TOKEN = r"(?u)\b[a-zA-Z]{3,}\b"


class CorpusUnavailableError(Exception):
    """20 Newsgroups is neither in the cache nor can it be fetched."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Word counts, shape (documents, words)."""

    counts: NDArray[np.int64]
    words: tuple[str, ...]
    description: str

    @property
    def tokens(self) -> int:
        return int(self.counts.sum())


@lru_cache(maxsize=1)
def newsgroups(data_home: Path | None) -> tuple[str, ...]:
    """The texts of 20 Newsgroups without headers, footers and quotes; from the cache if it is there."""
    home = None if data_home is None else str(data_home)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one warning for every failed attempt
            bunch = fetch_20newsgroups(
                data_home=home,
                subset="all",
                shuffle=False,
                remove=("headers", "footers", "quotes"),
                n_retries=1,
                delay=0.1,
            )
    except OSError as error:
        raise CorpusUnavailableError(
            f"20 Newsgroups is not in {home or 'the cache of scikit-learn'} and could not be fetched ({error}); "
            "--data-home names a folder that holds it."
        ) from error
    return tuple(bunch.data)


def draw_corpus(texts: Sequence[str], n_documents: int, n_words: int, seed: int, source: str) -> Corpus:
    """Random documents and the `n_words` most frequent words among them, stop words and short words left out.

    Documents with fewer than two of these words are replaced by others and the words counted again, until none is.
    """
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    if len(order) < n_documents:
        raise ValueError(f"n_documents must be at most {len(order)}, got {n_documents}: {source} has no more.")
    chosen, rest = order[:n_documents], order[n_documents:]
    counts, words = _count([texts[i] for i in chosen], n_words)
    for _ in range(MOST_ROUNDS):
        short = np.flatnonzero(counts.sum(axis=1) < LEAST_TOKENS)
        if not len(short) or not rest:
            break
        for row in short.tolist():
            if rest:
                chosen[row] = rest.pop(0)
        counts, words = _count([texts[i] for i in chosen], n_words)
    kept = counts[counts.sum(axis=1) >= LEAST_TOKENS]
    description = (
        f"{len(kept)} random documents of {source}, their {len(words)} most frequent words, {kept.sum()} tokens"
    )
    return Corpus(kept, words, description)


def _count(texts: Sequence[str], n_words: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    vectoriser = CountVectorizer(stop_words="english", token_pattern=TOKEN, max_features=n_words)
    counts = np.asarray(vectoriser.fit_transform(texts).todense(), dtype=np.int64)
    return counts, tuple(str(word) for word in vectoriser.get_feature_names_out())
