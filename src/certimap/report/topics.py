"""What a report on topics is about, and the table in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certimap.metrics import top_words
from certimap.report.text import plural
from certimap.results import ConstraintCheck, Result
from certimap.topics.constraints import TopicConstraints
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem

SHOWN_WORDS = 10


@dataclass(frozen=True, eq=False)
class TopicReport:
    """A solved topic problem.

    Attributes:
        title: heading of the report.
        problem, constraints: as solved.
        words: names of the words.
        result: the answer and what is proved about it.
        tolerance: relative gap that counts as optimal.
        seed: of the local search.
        preparation: how the counts came about.
        certificate_path: where the proof was saved, if it was.
        agreement: further figures about the answer, by name.
    """

    title: str
    problem: TopicProblem
    constraints: TopicConstraints
    words: tuple[str, ...]
    result: Result
    tolerance: float
    seed: int
    preparation: str = "as given"
    certificate_path: str | None = None
    agreement: dict[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> IntArray:
        """Topics of the cells."""
        return np.asarray(self._answer["z"], dtype=np.int64)

    def topics(self) -> list[TopicRow]:
        """Size and most probable words of every topic."""
        by_document, by_word = self.problem.objective.token_counts(self.labels)
        tokens, documents = by_word.sum(axis=1), (by_document > 0).sum(axis=0)
        words = top_words(self._answer["beta"], self.words, SHOWN_WORDS)
        return [
            TopicRow(k, int(tokens[k]), int(documents[k]), tuple(words[k][: int((by_word[k] > 0).sum())]))
            for k in range(self.problem.n_topics)
        ]

    def checks(self) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with the answer."""
        return self.constraints.checks(self.problem, self.labels)

    @property
    def _answer(self) -> Mapping[str, Any]:
        if self.result.assignment is None:
            raise ValueError(f"a topic report needs an answer, got the status {self.result.status.name}.")
        return self.result.assignment


@dataclass(frozen=True)
class TopicRow:
    """One line of the topic table; the words are those that occur in the topic, the most probable first."""

    topic: int
    tokens: int
    documents: int
    words: tuple[str, ...]


def describe_topics(problem: TopicProblem, constraints: TopicConstraints) -> str:
    """The problem in one line, for the head of the log table."""
    cells = problem.cells
    size = f"D={cells.n_documents} V={cells.n_words} K={problem.n_topics}"
    prior = f"alpha {problem.prior.alpha:g} eta {problem.prior.eta:g}"
    parts = [f"topics  {size}  {plural(int(cells.count.sum()), 'token')}  {prior}", constraints.summary()]
    return " | ".join(part for part in parts if part)
