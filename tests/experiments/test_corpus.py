"""Corpora: drawn documents, the stand-in for 20 Newsgroups, halves of held-out documents."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from certimap.experiments import corpus as module
from certimap.experiments.corpus import Corpus, collection, draw_corpus
from certimap.experiments.held_out import split_corpus, unigram
from certimap.experiments.made_up import DOCUMENTS, THEMES, made_up_texts
from certimap.metrics import fold_in, held_out_log_likelihood, perplexity

TEXTS = ["red green blue"] * 3 + ["red red", "blue", "the", "green green red", "yellow blue green"]


@pytest.fixture(autouse=True)
def forget_collections() -> None:
    collection.cache_clear()


def test_documents_and_words_are_drawn() -> None:
    drawn = draw_corpus(TEXTS, 4, 3, 0, "colours")
    assert drawn.words == ("blue", "green", "red")
    assert drawn.counts.shape == (4, 3) and (drawn.counts.sum(axis=1) >= 2).all()  # "blue" and "the" are replaced
    assert drawn.tokens == drawn.counts.sum()
    assert drawn.description == f"4 random documents of colours, their 3 most frequent words, {drawn.tokens} tokens"
    assert np.array_equal(drawn.counts, draw_corpus(TEXTS, 4, 3, 0, "colours").counts)
    assert len(draw_corpus(TEXTS, 8, 3, 0, "colours").counts) == 6  # nothing is left to replace them with
    with pytest.raises(ValueError, match="n_documents must be at most 8, got 9: colours has no more"):
        draw_corpus(TEXTS, 9, 3, 0, "colours")


def test_made_up_documents() -> None:
    words = [word for theme in THEMES for word in theme.split()]
    assert len(words) == len(set(words)) and not set(words) & ENGLISH_STOP_WORDS and min(map(len, words)) >= 3
    assert len(made_up_texts()) == DOCUMENTS and set(" ".join(made_up_texts()).split()) <= set(words)
    assert draw_corpus(made_up_texts(), 300, 150, 0, "made up").counts.shape == (300, 150)


def test_newsgroups_from_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def fetch(**options: Any) -> SimpleNamespace:
        asked.update(options)
        assert socket.getdefaulttimeout() == module.PATIENCE
        return SimpleNamespace(data=["one text", "another"])

    monkeypatch.setattr(module, "fetch_20newsgroups", fetch)
    found = collection(tmp_path)
    assert (found.texts, found.name, found.remark) == (("one text", "another"), "20 Newsgroups", "")
    assert asked["data_home"] == str(tmp_path) and asked["remove"] == ("headers", "footers", "quotes")
    assert socket.getdefaulttimeout() is None


def test_made_up_documents_stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(**options: Any) -> SimpleNamespace:
        raise OSError("no route")

    monkeypatch.setattr(module, "fetch_20newsgroups", fetch)
    found = collection(tmp_path)
    assert found.texts == made_up_texts() and found.name == "a made-up collection"
    for part in ("no route", str(tmp_path), "--data-home", "Made-up documents stand in", "nothing here"):
        assert part in found.remark


def test_halves_of_held_out_documents() -> None:
    counts = np.array([[3, 2, 0], [1, 1, 1], [0, 4, 2], [2, 0, 2]])
    split = split_corpus(Corpus(counts, ("a", "b", "c"), "four"), 2, seed=1)
    assert split.train.counts.shape == (2, 3)
    total = split.train.counts.sum(axis=0) + split.seen.sum(axis=0) + split.hidden.sum(axis=0)
    assert np.array_equal(total, counts.sum(axis=0)) and (split.hidden >= 0).all()
    assert np.isin(split.seen.sum(axis=1) - split.hidden.sum(axis=1), [0, 1]).all()
    beta = np.array([[0.6, 0.2, 0.2], [0.1, 0.5, 0.4]])
    score = split.score(beta, 1.1)
    theta = fold_in(split.seen, beta, 1.1)
    assert score["log_likelihood"] == held_out_log_likelihood(split.hidden, theta, beta)
    assert score["perplexity"] == pytest.approx(perplexity(split.hidden, theta, beta))
    for wrong in (0, 4):
        with pytest.raises(ValueError, match=rf"n_held_out must be in 1\.\.3, got {wrong}"):
            split_corpus(Corpus(counts, ("a", "b", "c"), "four"), wrong, seed=0)
    assert unigram([[1, 2], [1, 0]], 1.0).tolist() == [[0.5, 0.5]]
