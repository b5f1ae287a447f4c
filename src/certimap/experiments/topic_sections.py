"""The paper's tables of the topic model, its figures beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.experiments import printed, prose
from certimap.experiments.comparison import (
    LOG_MAP_COLUMNS,
    LOG_MAP_HEADS,
    beside,
    figure,
    largest_remark,
    log_map_cells,
    log_map_rows,
    order_remark,
)
from certimap.experiments.corpus import Corpus
from certimap.experiments.methods import OURS, TOPIC_SAMPLER, VARIATIONAL
from certimap.experiments.tasks import Record
from certimap.metrics import match_topics, top_words
from certimap.report.document import Cell, DataFile, Section, Table

TOP = 10
SHOWN_TOPICS = 2
COMPARED = (OURS, TOPIC_SAMPLER, VARIATIONAL)
# What a half of a document is predicted with.
MAP_TOPICS, SMOOTHED, UNIGRAM = "certimap, MAP topics", "certimap, smoothed topics", "one topic for all"
GIBBS_MEAN = "Gibbs, mean of samples"
PREDICTORS = {VARIATIONAL: printed.VARIATIONAL, GIBBS_MEAN: printed.SAMPLER, MAP_TOPICS: printed.GBD}


def topic_log_map_section(found: Sequence[Record], corpus: Corpus, remark: str) -> Section:
    """log MAP of every method, as returned and after the closed-form refit, with bounds and seconds."""
    paper = {name: (value, None) for name, value in printed.TOPIC_LOG_MAP.items()}
    rows = [
        (*cells, figure(record.seconds, 2)) for cells, record in zip(log_map_cells(found, paper), found, strict=True)
    ]
    numbers = [(*row, record.seconds) for row, record in zip(log_map_rows(found, paper), found, strict=True)]
    ours = next(record for record in found if record.method == OURS)
    said = (largest_remark({"topics": found}), order_remark("topics", found, paper), _scale_remark(ours, corpus))
    return Section(
        id="topic-log-map",
        title="Topics: log MAP",
        paragraphs=(prose.TOPIC_LOG_MAP,),
        parts=(
            Table(
                "topic-log-map-table",
                f"{corpus.description}, {printed.TOPIC_SIZES[2]} topics: log MAP, the paper's in brackets",
                (*LOG_MAP_HEADS, "seconds"),
                tuple(rows),
            ),
        ),
        files=(DataFile("topic_log_map.csv", (*LOG_MAP_COLUMNS, "seconds"), tuple(numbers)),),
        remarks=(*_given(remark), *said),
    )


def top_words_section(results: Mapping[str, Any], corpus: Corpus, remark: str) -> Section:
    """The most probable words of certimap's two largest topics, and of the topics that match them."""
    ours = results[OURS]
    names = list(corpus.words)
    reference = np.array(ours["topic_word"])
    largest = np.argsort(-np.array(ours["tokens"]), kind="stable")[:SHOWN_TOPICS]
    words: dict[str, list[list[str]]] = {}
    for method in COMPARED:
        topics = np.array(results[method]["topic_word"])
        matched = topics[match_topics(reference, topics)]
        words[method] = _listed(matched[largest], names)
    rows = [
        (topic + 1, rank + 1, method, words[method][topic][rank])
        for topic in range(SHOWN_TOPICS)
        for method in COMPARED
        for rank in range(TOP)
    ]
    return Section(
        id="top-words",
        title="Topics: top ten words",
        paragraphs=(prose.TOP_WORDS,),
        parts=(
            _word_table("top-words-table", f"The ten most probable words; {corpus.description}", words),
            _word_table("top-words-printed", "The paper's table, of its own documents", printed.TOP_WORDS),
        ),
        files=(DataFile("top_words.csv", ("topic", "rank", "method", "word"), tuple(rows)),),
        remarks=_given(remark),
    )


def perplexity_section(scores: Sequence[Mapping[str, Mapping[str, float]]], description: str, remark: str) -> Section:
    """Means over the draws of documents, and standard errors where there are several."""
    shown, rows = [], []
    for method in scores[0]:
        likelihood, perplexity = printed.PERPLEXITY.get(PREDICTORS.get(method, ""), (None, None))
        values = [np.array([score[method][key] for score in scores]) for key in ("log_likelihood", "perplexity")]
        means = [float(value.mean()) for value in values]
        error = float(values[1].std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else None
        cells = (method, beside(means[0], likelihood), beside(means[1], perplexity))
        shown.append(cells if error is None else (*cells, figure(error)))
        rows += [
            (draw, method, score[method]["log_likelihood"], score[method]["perplexity"], likelihood, perplexity)
            for draw, score in enumerate(scores)
        ]
    heads = ("", "log-likelihood of the hidden halves", "perplexity", "standard error")[: 3 + (len(scores) > 1)]
    drawn = f"means of {len(scores)} draws" if len(scores) > 1 else "one draw"
    caption = f"{description}; {drawn}, the paper's in brackets"
    columns = ("draw", "method", "log_likelihood", "perplexity", "printed_log_likelihood", "printed_perplexity")
    return Section(
        id="perplexity",
        title="Topics: perplexity",
        paragraphs=(prose.PERPLEXITY,),
        parts=(Table("perplexity-table", caption, heads, tuple(shown)),),
        files=(DataFile("perplexity.csv", columns, tuple(rows)),),
        remarks=_given(remark),
    )


def _listed(topics: NDArray[np.float64], names: list[str]) -> list[list[str]]:
    """The top words of every topic; a dash for those that are no more probable than a word that never occurs in it."""
    ranked = top_words(topics, names, TOP)
    order = [np.sort(row)[::-1][:TOP] for row in topics]
    return [
        [word if share > least else "–" for word, share in zip(words, shares, strict=True)]
        for words, shares, least in zip(ranked, order, topics.min(axis=1), strict=True)
    ]


def _given(remark: str) -> tuple[str, ...]:
    return (remark,) if remark else ()


def _scale_remark(ours: Record, corpus: Corpus) -> str:
    """The paper's value cannot belong to such a corpus: its sum of logarithms has too many terms."""
    stated = printed.TOPIC_LOG_MAP[printed.GBD]
    tokens = round(stated / (ours.refitted / corpus.tokens), -4)
    documents, words, _ = printed.TOPIC_SIZES
    return (
        f"The paper's values are of another scale: at {-ours.refitted / corpus.tokens:.2f} nats a token, as here, "
        f"{stated:,.0f} would take about {tokens:,.0f} tokens of {words} words in {documents} documents; this draw "
        f"has {corpus.tokens:,}."
    )


def _word_table(id: str, caption: str, words: Mapping[str, Sequence[Sequence[str]]]) -> Table:
    """A row for each rank; words of a topic that at least two methods have are in bold."""
    rows: list[tuple[Cell | str, ...]] = []
    heads = tuple(f"topic {topic + 1}: {method}" for topic in range(SHOWN_TOPICS) for method in words)
    for rank in range(TOP):
        cells: list[Cell | str] = [str(rank + 1)]
        for topic in range(SHOWN_TOPICS):
            counts = Counter(word for listed in words.values() for word in listed[topic])
            for listed in words.values():
                word = listed[topic][rank]
                cells.append(Cell(word, strong=word != "–" and counts[word] > 1))
        rows.append(tuple(cells))
    return Table(id, caption, ("", *heads), tuple(rows))
