"""What a report on topics is about, and the table in it."""

from __future__ import annotations

from dataclasses import dataclass

from certimap.metrics import top_words
from certimap.report.answer import AnswerReport
from certimap.report.text import plural
from certimap.results import ConstraintCheck
from certimap.topics.constraints import TopicConstraints
from certimap.topics.problem import TopicProblem

SHOWN_WORDS = 10


@dataclass(frozen=True, eq=False, kw_only=True)
class TopicReport(AnswerReport):
    """A solved topic problem.

    Attributes:
        problem, constraints: as solved.
        words: names of the words.
    """

    problem: TopicProblem
    constraints: TopicConstraints
    words: tuple[str, ...]

    def topics(self) -> list[TopicRow]:
        """Size and most probable words of every topic."""
        by_document, by_word = self.problem.objective.token_counts(self.labels)
        tokens, documents = by_word.sum(axis=1), (by_document > 0).sum(axis=0)
        words = top_words(self.answer["beta"], self.words, SHOWN_WORDS)
        return [
            TopicRow(k, int(tokens[k]), int(documents[k]), tuple(words[k][: int((by_word[k] > 0).sum())]))
            for k in range(self.problem.n_topics)
        ]

    def checks(self) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with the answer."""
        return self.constraints.checks(self.problem, self.labels)


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
