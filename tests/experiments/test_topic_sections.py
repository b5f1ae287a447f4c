"""The topic model's tables, from results by hand."""

from typing import Any

import numpy as np
import pytest
from tests.experiments.records import record, three_methods
from tests.experiments.test_mixture_sections import cells

from certimap.experiments import topic_sections
from certimap.experiments.corpus import Corpus
from certimap.experiments.methods import OURS, TOPIC_SAMPLER, VARIATIONAL
from certimap.experiments.topic_sections import (
    MAP_TOPICS,
    UNIGRAM,
    perplexity_section,
    top_words_section,
    topic_log_map_section,
)
from certimap.report.document import Cell, Table

CORPUS = Corpus(np.full((2, 4), 5), ("ant", "bee", "cat", "dog"), "2 documents")


def test_log_map_section_and_its_scale() -> None:
    found = [record(OURS, -100.0, -90.0), record(VARIATIONAL, -110.0), record(TOPIC_SAMPLER, -120.0)]
    section = topic_log_map_section(found, CORPUS, "the remark")
    rows = cells(section.parts[0])
    assert rows[OURS][1:] == ["-100.000 [-1,101,130.0]", "-90.000", "10.000", "certified", "0.25"]
    assert section.remarks[0] == "the remark" and "2 of 3 pairs agree" in section.remarks[2]
    assert "at 2.50 nats a token" in section.remarks[3] and "about 440,000 tokens" in section.remarks[3]
    assert section.files[0].text().splitlines()[0].endswith("printed_value,printed_bound,seconds")
    assert len(topic_log_map_section(three_methods(-5.0, -4.0), CORPUS, "").remarks) == 3


def test_top_words_are_matched_and_shared_ones_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_sections, "TOP", 3)
    ours = [[0.7, 0.2, 0.05, 0.05], [0.1, 0.1, 0.5, 0.3]]
    others = [[0.05, 0.1, 0.35, 0.5], [0.4, 0.15, 0.35, 0.1]]
    results: dict[str, Any] = {
        OURS: {"topic_word": ours, "tokens": [3, 9]},
        TOPIC_SAMPLER: {"topic_word": others},
        VARIATIONAL: {"topic_word": others[::-1]},
    }
    section = top_words_section(results, CORPUS, "")
    table, printed = section.parts
    assert isinstance(table, Table) and isinstance(printed, Table)
    assert table.columns[1:4] == (f"topic 1: {OURS}", f"topic 1: {TOPIC_SAMPLER}", f"topic 1: {VARIATIONAL}")
    words = [[cell.text for cell in row[1:] if isinstance(cell, Cell)] for row in table.rows]
    assert words == [
        ["cat", "dog", "dog", "ant", "ant", "ant"],  # topic 1 is ours with more tokens, the others matched with it
        ["dog", "cat", "cat", "bee", "cat", "cat"],
        ["–", "bee", "bee", "–", "bee", "bee"],  # ours has no third word in either
    ]
    assert [cell.strong for cell in table.rows[2][1:] if isinstance(cell, Cell)] == [
        False,
        True,
        True,
        False,
        True,
        True,
    ]
    assert printed.columns[1] == "topic 1: GBD" and printed.rows[0][1] == Cell("israel", strong=True)
    assert len(section.files[0].text().splitlines()) == 1 + 2 * 3 * 3


def test_perplexity_section() -> None:
    def score(value: float) -> dict[str, float]:
        return {"log_likelihood": -10.0 * value, "perplexity": value}

    draws = [{UNIGRAM: score(9.0), MAP_TOPICS: score(4.0)}, {UNIGRAM: score(11.0), MAP_TOPICS: score(8.0)}]
    rows = cells(perplexity_section(draws, "documents", "").parts[0])
    assert rows == {
        UNIGRAM: ["-100.000", "10.000", "1.000"],
        MAP_TOPICS: ["-60.000 [-2,271.184]", "6.000 [191.976]", "2.000"],
    }
    one = perplexity_section(draws[:1], "documents", "no data").parts[0]
    assert isinstance(one, Table) and len(one.columns) == 3 and "one draw" in one.caption
