"""Small corpora drawn from a collection of texts: random documents and their most frequent words."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer

from certimap.experiments.made_up import NAME as MADE_UP
from certimap.experiments.made_up import made_up_texts

LEAST_TOKENS = 2  # of a document, so that it has two halves
MOST_ROUNDS = 50
TOKEN = r"(?u)\b[a-zA-Z]{3,}\b"
PATIENCE = 20.0  # seconds without an answer from the server of a data set


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


@dataclass(frozen=True, eq=False)
class Collection:
    """Texts to draw from; `remark` says why they are not the ones that the paper uses, where they are not."""

    texts: tuple[str, ...]
    name: str
    remark: str = ""


@lru_cache(maxsize=1)
def collection(data_home: Path | None) -> Collection:
    """20 Newsgroups; where it cannot be had, made-up documents."""
    try:
        return Collection(newsgroups(data_home), "20 Newsgroups")
    except CorpusUnavailableError as error:
        remark = f"{error} Made-up documents stand in for it: nothing here compares with the paper."
        return Collection(made_up_texts(), MADE_UP, remark)


def newsgroups(data_home: Path | None) -> tuple[str, ...]:
    """The texts of 20 Newsgroups without headers, footers and quotes; from the cache if it is there."""
    home = None if data_home is None else str(data_home)
    try:
        with _patience(), warnings.catch_warnings():
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


@contextmanager
def _patience() -> Iterator[None]:
    """Wait for a server, yet not for ever: downloads have no limit of their own."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _count(texts: Sequence[str], n_words: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    vectoriser = CountVectorizer(stop_words="english", token_pattern=TOKEN, max_features=n_words)
    counts = np.asarray(vectoriser.fit_transform(texts).todense(), dtype=np.int64)
    return counts, tuple(str(word) for word in vectoriser.get_feature_names_out())
