"""Constraints on words and tokens as arguments: checked, and carried over to the items of a topic problem."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsInt, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from certimap._numeric.links import chain, closure, numbered_by_first
from certimap.topics.objective import Cells, FloatArray, IntArray

Pairs: TypeAlias = Iterable[tuple[int, int]]
WeightedPairs: TypeAlias = Iterable[tuple[int, int, float]]
Tokens: TypeAlias = Iterable[tuple[int, int, int]]
WeightedTokens: TypeAlias = Iterable[tuple[int, int, int, float]]


@dataclass(frozen=True)
class _Claim:
    """Somebody says that a word belongs to a topic."""

    source: str
    word: int
    topic: int


class Reader:
    """Carries constraints on words and tokens over to items."""

    def __init__(
        self, cells: Cells, matrix: csr_array, n_topics: int, names: tuple[str, ...] | None, ties: IntArray
    ) -> None:
        self.ties = ties
        self._cells = cells
        self._matrix = matrix
        self._K = n_topics
        self._names = names
        self._group = closure(ties, cells.n_words)
        self._linked = np.bincount(self._group)[self._group] > 1
        # A cell of an unlinked word is an item of its own; negative numbers are not taken by any group.
        number = np.where(self._linked[cells.word], self._group[cells.word], -1 - np.arange(len(cells)))
        self.cell_item = numbered_by_first(number) if len(ties) else np.arange(len(cells))
        self._occurs = np.bincount(cells.word, minlength=cells.n_words) > 0

    def lifted(self, apart: IntArray) -> IntArray:
        """Every pair of occurring words that cannot-links keep apart, through must-links; no pair may be tied."""
        for u, w in apart:
            if self._group[u] == self._group[w]:
                raise ValueError(
                    f"cannot_link_words must not contradict must_link_words, got the pair ({self._name(u)}, "
                    f"{self._name(w)}): the words are tied by the must-links {self._chain(u, w)}."
                )
        pairs = [
            (u, w)
            for g, h in np.unique(np.sort(self._group[apart], axis=1), axis=0)
            for u in np.flatnonzero(self._occurs & (self._group == g))
            for w in np.flatnonzero(self._occurs & (self._group == h))
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def fixed_items(self, seeds: Pairs, tokens: Tokens) -> IntArray:
        """Topic of every item or -1; all that is said about an item must agree."""
        of_group: dict[int, _Claim] = {}
        of_cell: dict[int, _Claim] = {}
        for word, topic in checked_rows("seed_words", seeds, (self._cells.n_words, self._K)):
            claim = _Claim("seed_words", int(word), int(topic))
            self._check_agree(of_group.setdefault(int(self._group[word]), claim), claim)
        for document, word, topic in checked_rows("fixed_tokens", tokens, self._token_limits):
            claim = _Claim(f"fixed_tokens (document {document})", int(word), int(topic))
            cell, group = self._cell("fixed_tokens", document, word), int(self._group[word])
            if self._linked[word]:
                first = of_group.setdefault(group, claim)
            else:
                first = of_group.get(group) or of_cell.setdefault(cell, claim)
            self._check_agree(first, claim)
        topic_of_group = np.full(self._cells.n_words, -1, dtype=np.int64)
        topic_of_group[list(of_group)] = [claim.topic for claim in of_group.values()]
        fixed = np.full(int(self.cell_item.max(initial=-1)) + 1, -1, dtype=np.int64)
        fixed[self.cell_item] = topic_of_group[self._group[self._cells.word]]
        fixed[self.cell_item[list(of_cell)]] = [claim.topic for claim in of_cell.values()]
        return fixed

    def check_apart(self, apart: IntArray, fixed: IntArray) -> None:
        """No two words that are apart may be fixed to one topic."""
        topics: dict[int, set[int]] = {}
        for word, topic in zip(self._cells.word, fixed[self.cell_item], strict=True):
            if topic >= 0:
                topics.setdefault(int(word), set()).add(int(topic))
        for u, w in apart:
            for k in topics.get(int(u), set()) & topics.get(int(w), set()):
                raise ValueError(
                    f"cannot_link_words must not contradict seed_words and fixed_tokens: words {self._name(u)} and "
                    f"{self._name(w)} may not share a topic and are both fixed to topic {k}."
                )

    def check_limits(self, fixed: IntArray, most: int, least: int) -> None:
        """Fixed tokens within the topics of their document; enough pairs of document and topic for every topic."""
        document, topic = self._cells.document, fixed[self.cell_item]
        held = np.unique(np.stack([document, topic], axis=1)[topic >= 0], axis=0)
        for d, number in Counter(held[:, 0].tolist()).items():
            if number > most:
                raise ValueError(
                    f"max_topics must be at least {number}, got {most}: seed_words and fixed_tokens put tokens of "
                    f"document {d} in the topics {', '.join(str(k) for k in held[held[:, 0] == d, 1])}."
                )
        pairs = np.unique(np.stack([document, self.cell_item], axis=1), axis=0)
        available = int(np.minimum(np.bincount(pairs[:, 0], minlength=1), most).sum())
        if least * self._K > available:
            raise ValueError(
                f"min_documents must be at most {available // self._K}, got {least}: the documents can use "
                f"{available} topics altogether, and {self._K} topics share them."
            )

    def soft_links(
        self, together: WeightedPairs, apart: WeightedPairs
    ) -> tuple[IntArray, FloatArray, NDArray[np.bool_], float]:
        """Links between words that occur and that no hard link ties; the constant cost of the others."""
        rows: list[tuple[int, int, float, bool]] = []
        constant = 0.0
        for name, links, wanted in (
            ("soft_must_link_words", together, True),
            ("soft_cannot_link_words", apart, False),
        ):
            pairs, weights = split_weights(name, links, 2)
            for (u, w), weight in zip(checked_pairs(name, pairs, self._cells.n_words), weights, strict=True):
                if not (self._occurs[u] or self._occurs[w]):
                    continue
                if self._group[u] != self._group[w]:
                    rows.append((int(u), int(w), weight, wanted))
                elif not wanted and self._occurs[u] and self._occurs[w]:
                    constant += weight
        ends = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2)
        return ends, np.array([row[2] for row in rows], dtype=float), np.array([row[3] for row in rows], bool), constant

    def wishes(self, seeds: WeightedPairs, tokens: WeightedTokens) -> tuple[IntArray, IntArray, FloatArray]:
        """Items, topics and costs, one row for each item and topic; every token outside costs its weight."""
        pairs, pair_weights = split_weights("soft_seed_words", seeds, 2)
        triples, triple_weights = split_weights("soft_fixed_tokens", tokens, 3)
        rows = checked_rows("soft_seed_words", pairs, (self._cells.n_words, self._K))
        wishes = [
            (int(c), int(topic), weight)
            for (word, topic), weight in zip(rows, pair_weights, strict=True)
            for c in np.flatnonzero(self._cells.word == word)
        ]
        rows = checked_rows("soft_fixed_tokens", triples, self._token_limits)
        wishes += [
            (self._cell("soft_fixed_tokens", document, word), int(topic), weight)
            for (document, word, topic), weight in zip(rows, triple_weights, strict=True)
        ]
        cost: defaultdict[tuple[int, int], float] = defaultdict(float)
        for cell, wanted, weight in wishes:
            cost[int(self.cell_item[cell]), wanted] += weight * int(self._cells.count[cell])
        keys = np.array(sorted(cost), dtype=np.int64).reshape(-1, 2)
        costs = np.array([cost[int(i), int(k)] for i, k in keys], dtype=float)
        return np.ascontiguousarray(keys[:, 0]), np.ascontiguousarray(keys[:, 1]), costs

    @property
    def _token_limits(self) -> tuple[int, int, int]:
        return self._cells.n_documents, self._cells.n_words, self._K

    def _cell(self, parameter: str, document: int, word: int) -> int:
        start, end = self._matrix.indptr[document], self._matrix.indptr[document + 1]
        found = start + int(np.searchsorted(self._matrix.indices[start:end], word))
        if found == end or self._matrix.indices[found] != word:
            raise ValueError(
                f"{parameter} must name tokens that occur: document {document} has none of {self._name(word)}."
            )
        return int(found)

    def _check_agree(self, first: "_Claim", second: "_Claim") -> None:
        if first.topic == second.topic:
            return
        claims = ", ".join(f"{c.source} puts {self._name(c.word)} in topic {c.topic}" for c in (first, second))
        if first.word == second.word:
            raise ValueError(f"seed_words and fixed_tokens must not contradict each other: {claims}.")
        raise ValueError(
            f"seed_words and fixed_tokens must not contradict must_link_words: {claims}, and the words are tied by the "
            f"must-links {self._chain(first.word, second.word)}."
        )

    def _chain(self, u: int, w: int) -> str:
        return " - ".join(self._name(v) for v in chain(self.ties, self._cells.n_words, int(u), int(w)))

    def _name(self, word: SupportsInt) -> str:
        return word_name(self._names, word)


def word_name(names: tuple[str, ...] | None, word: SupportsInt) -> str:
    """A word in messages."""
    return f"word {int(word)}" if names is None else repr(names[int(word)])


def checked_pairs(name: str, pairs: Iterable[Sequence[int]], n_words: int) -> IntArray:
    """Pairs of different words, shape (P, 2)."""
    array = checked_rows(name, pairs, (n_words, n_words))
    for u, w in array[array[:, 0] == array[:, 1]][:1]:
        raise ValueError(f"{name} must hold pairs of different words, got ({u}, {w}).")
    return array


def checked_rows(name: str, rows: Iterable[Sequence[int]], sizes: tuple[int, ...]) -> IntArray:
    """Tuples of numbers, each in 0..size-1."""
    array = np.array(list(rows), dtype=np.int64).reshape(-1, len(sizes))
    outside = (array < 0) | (array >= np.array(sizes))
    for row in array[outside.any(axis=1)][:1]:
        ranges = ", ".join(f"0..{size - 1}" for size in sizes)
        raise ValueError(f"{name} must hold tuples in the ranges {ranges}, got ({', '.join(str(x) for x in row)}).")
    return array


def checked_topics(n_topics: int) -> int:
    if isinstance(n_topics, bool) or n_topics != int(n_topics) or n_topics < 1:
        raise ValueError(f"n_topics must be an integer >= 1, got {n_topics!r}.")
    return int(n_topics)


def checked_limit(name: str, limit: int | None, least: int, default: int) -> int:
    if limit is None:
        return default
    if isinstance(limit, bool) or limit != int(limit) or limit < least:
        raise ValueError(f"{name} must be None or an integer >= {least}, got {limit!r}.")
    return int(limit)


def checked_weight(name: str, weight: float) -> float:
    if not weight >= 0.0:
        raise ValueError(f"{name} must be >= 0, inf for a hard limit, got {weight!r}.")
    return float(weight)


def split_weights(name: str, rows: Iterable[Sequence[float]], width: int) -> tuple[list[tuple[int, ...]], list[float]]:
    """Tuples of numbers, and the weight at the end of each."""
    entries, weights = [], []
    for row in rows:
        weight = float(row[-1])
        if len(row) != width + 1 or not 0.0 <= weight < np.inf:
            raise ValueError(f"{name} must hold {width} numbers and a finite weight >= 0, got {tuple(row)!r}.")
        entries.append(tuple(int(x) for x in row[:-1]))
        weights.append(weight)
    return entries, weights
