"""Constraints on topics as users give them: words by name or number, hard or with a weight; compared with an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from certimap.results import ConstraintCheck
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem
from certimap.topics.reading import word_name

Entries: TypeAlias = Iterable[Sequence[Any]]
Seeds: TypeAlias = Entries | Mapping[int, Sequence[Any]]
Limit: TypeAlias = int | tuple[int, float]
Pair: TypeAlias = tuple[int, int]
Token: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class TopicConstraints:
    """What the topics have to respect; words, documents and topics by number.

    Attributes:
        word_names: names of the words, or None.
        must_link_words, cannot_link_words: pairs of words.
        seed_words: pairs (word, topic).
        fixed_tokens: triples (document, word, topic).
        soft_*: the same with the log-density that violating them costs at the end.
        max_topics, max_topics_weight: most topics of a document or None, and what each one more costs; inf: hard.
        min_documents, min_documents_weight: least documents of a topic or None, and what each one less costs.
    """

    word_names: tuple[str, ...] | None
    must_link_words: tuple[Pair, ...]
    cannot_link_words: tuple[Pair, ...]
    seed_words: tuple[Pair, ...]
    fixed_tokens: tuple[Token, ...]
    soft_must_link_words: tuple[tuple[int, int, float], ...]
    soft_cannot_link_words: tuple[tuple[int, int, float], ...]
    soft_seed_words: tuple[tuple[int, int, float], ...]
    soft_fixed_tokens: tuple[tuple[int, int, int, float], ...]
    max_topics: int | None
    max_topics_weight: float
    min_documents: int | None
    min_documents_weight: float

    @classmethod
    def from_arguments(
        cls,
        shape: tuple[int, int],
        n_topics: int,
        *,
        word_names: Sequence[str] | None = None,
        must_link_words: Entries | None = None,
        cannot_link_words: Entries | None = None,
        seed_words: Seeds | None = None,
        fixed_tokens: Entries | None = None,
        max_topics_per_document: Limit | None = None,
        min_documents_per_topic: Limit | None = None,
    ) -> TopicConstraints:
        """Check every argument on its own; contradictions between them are found by `problem`.

        Rows may carry a weight as one more entry, limits as a second: then they are soft. `seed_words` may also be a
        mapping from topics to words. `shape` is that of the counts.
        """
        n_documents, n_words = shape
        names = None if word_names is None else tuple(str(name) for name in word_names)
        if names is not None and len(names) != n_words:
            raise ValueError(f"vocabulary must name the {n_words} columns of X, got {len(names)} names.")
        word = _word_reader(names, n_words)
        topic = _number_reader("a topic", n_topics)
        document = _number_reader("a document", n_documents)
        links, seeds = {"i": word, "j": word}, {"word": word, "topic": topic}
        together = _split("must_link_words", must_link_words, links)
        apart = _split("cannot_link_words", cannot_link_words, links)
        named = _split("seed_words", _seed_rows(seed_words), seeds)
        tokens = _split("fixed_tokens", fixed_tokens, {"document": document, **seeds})
        most, most_weight = _limit("max_topics_per_document", max_topics_per_document, 1)
        least, least_weight = _limit("min_documents_per_topic", min_documents_per_topic, 0)
        return cls(
            word_names=names,
            must_link_words=together[0],
            soft_must_link_words=together[1],
            cannot_link_words=apart[0],
            soft_cannot_link_words=apart[1],
            seed_words=named[0],
            soft_seed_words=named[1],
            fixed_tokens=tokens[0],
            soft_fixed_tokens=tokens[1],
            max_topics=most,
            max_topics_weight=most_weight,
            min_documents=least,
            min_documents_weight=least_weight,
        )

    def problem(self, counts: Any, prior: TopicPrior, n_topics: int) -> TopicProblem:
        """The topic problem under these constraints; ValueError names constraints that contradict each other."""
        return TopicProblem.from_counts(counts, prior, n_topics, **asdict(self))

    def checks(self, problem: TopicProblem, cell_labels: ArrayLike) -> tuple[ConstraintCheck, ...]:
        """Every constraint compared with topics of the cells."""
        labels = np.asarray(cell_labels, dtype=np.int64)
        document_topic, topic_word = problem.objective.token_counts(labels)
        present = topic_word > 0
        found: list[ConstraintCheck] = []

        def add(kind: str, subject: str, units: int, weight: float) -> None:
            hard = math.isinf(weight)
            subject = subject if hard else f"{subject}, weight {weight:g}"
            cost = 0.0 if hard or not units else weight * units
            found.append(ConstraintCheck(kind if hard else f"soft {kind}", subject, hard, units == 0, cost))

        for i, j, weight in _weighted(self.must_link_words, self.soft_must_link_words):
            topics = int((present[:, i] | present[:, j]).sum())
            add("must-link", f"{self.word(i)}, {self.word(j)}", max(topics - 1, 0), weight)
        for i, j, weight in _weighted(self.cannot_link_words, self.soft_cannot_link_words):
            add("cannot-link", f"{self.word(i)}, {self.word(j)}", int((present[:, i] & present[:, j]).sum()), weight)
        for v, k, weight in _weighted(self.seed_words, self.soft_seed_words):
            outside = int(topic_word[:, v].sum() - topic_word[k, v])
            add("seed word", f"{self.word(v)} in topic {k}", outside, weight)
        cells = problem.cells
        for d, v, k, weight in _weighted(self.fixed_tokens, self.soft_fixed_tokens):
            moved = (cells.document == d) & (cells.word == v) & (labels != k)
            outside = int(cells.count[moved].sum())
            add("fixed tokens", f"{self.word(v)} of document {d} in topic {k}", outside, weight)
        uses = document_topic > 0
        if self.max_topics is not None:
            excess = int(np.maximum(uses.sum(axis=1) - self.max_topics, 0).sum())
            add("topics per document", f"at most {self.max_topics}", excess, self.max_topics_weight)
        if self.min_documents is not None:
            missing = int(np.maximum(self.min_documents - uses.sum(axis=0), 0).sum())
            add("documents per topic", f"at least {self.min_documents}", missing, self.min_documents_weight)
        return tuple(found)

    def summary(self) -> str:
        """How many constraints of each kind; empty without constraints."""
        counts = (
            (len(self.must_link_words), "must-link"),
            (len(self.cannot_link_words), "cannot-link"),
            (len(self.seed_words), "seed"),
            (len(self.fixed_tokens), "fixed"),
            (len(self.soft_must_link_words), "soft must-link"),
            (len(self.soft_cannot_link_words), "soft cannot-link"),
            (len(self.soft_seed_words), "soft seed"),
            (len(self.soft_fixed_tokens), "soft fixed"),
        )
        parts = [f"{count} {noun}" for count, noun in counts if count]
        for limit, weight, text in (
            (self.max_topics, self.max_topics_weight, "topics per document <="),
            (self.min_documents, self.min_documents_weight, "documents per topic >="),
        ):
            if limit is not None:
                parts.append(f"{'' if math.isinf(weight) else 'soft '}{text} {limit}")
        return ", ".join(parts)

    def word(self, v: int) -> str:
        """The word in messages."""
        return word_name(self.word_names, v)


def _weighted(hard: Iterable[tuple[int, ...]], soft: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Both kinds with a weight at the end, infinite for the hard ones."""
    return [(*row, math.inf) for row in hard] + list(soft)


def _word_reader(names: tuple[str, ...] | None, n_words: int) -> Callable[[Any], int]:
    """Reads a word given by its name or number."""
    number = {} if names is None else {name: v for v, name in enumerate(names)}
    by_number = _number_reader("a word", n_words)

    def read(entry: Any) -> int:
        if not isinstance(entry, str):
            return by_number(entry)
        if names is None:
            raise _WrongEntryError(
                f"the names of the words are not known: give vocabulary, or numbers 0..{n_words - 1}"
            )
        if entry not in number:
            raise _WrongEntryError(f"{entry!r} is not in the vocabulary")
        return number[entry]

    return read


def _number_reader(noun: str, size: int) -> Callable[[Any], int]:
    def read(entry: Any) -> int:
        # A weight in the same array makes the numbers floats.
        whole = isinstance(entry, Real) and not isinstance(entry, bool) and entry == math.floor(entry)
        if not whole or not 0 <= entry < size:
            raise _WrongEntryError(f"{noun} is one of 0..{size - 1}")
        return int(entry)

    return read


class _WrongEntryError(Exception):
    """What is wrong with one entry of a row."""


def _seed_rows(seeds: Seeds | None) -> Entries | None:
    if not isinstance(seeds, Mapping):
        return seeds
    groups = {k: [words] if isinstance(words, str | Integral) else words for k, words in seeds.items()}
    return [(word, k) for k, words in groups.items() for word in words]


def _split(name: str, rows: Entries | None, columns: Mapping[str, Callable[[Any], int]]) -> tuple[Any, Any]:
    """Rows, and rows with a weight; they may be mixed."""
    hard: list[tuple[int, ...]] = []
    soft: list[tuple[float, ...]] = []
    shape = ", ".join(columns)
    for row in rows if rows is not None else ():
        entries = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else [row]
        if len(entries) not in (len(columns), len(columns) + 1):
            raise ValueError(f"{name} must hold rows ({shape}) or ({shape}, weight), got {row!r}.")
        try:
            read = tuple(reader(entry) for reader, entry in zip(columns.values(), entries, strict=False))
        except _WrongEntryError as error:
            raise ValueError(f"{name} must hold rows ({shape}), got {row!r}: {error}.") from None
        if len(entries) == len(columns):
            hard.append(read)
        else:
            soft.append((*read, _weight(name, entries[-1], row)))
    return tuple(hard), tuple(soft)


def _weight(name: str, weight: Any, given: Any) -> float:
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0.0 <= float(weight) < math.inf:
        raise ValueError(f"{name} must have finite weights >= 0, got {given!r}; what is hard has no weight.")
    return float(weight)


def _limit(name: str, limit: Limit | None, least: int) -> tuple[int | None, float]:
    """A limit and its weight, infinite where none is given."""
    if limit is None:
        return None, math.inf
    number, *weights = limit if isinstance(limit, tuple) else (limit,)
    if not isinstance(number, Integral) or isinstance(number, bool) or number < least or len(weights) > 1:
        allowed = f"None, an integer >= {least}, or a pair of one and a weight"
        raise ValueError(f"{name} must be {allowed}, got {limit!r}.")
    return int(number), _weight(name, weights[0], limit) if weights else math.inf
