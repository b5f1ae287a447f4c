"""A constrained topic problem: counts, prior and constraints as flat arrays, and what an assignment is worth.

All tokens of a word in a document, a cell, share a topic; without a minimum number of documents nothing is lost by that
(`objective`). What the constraints mean for the cells:

- must-link words: all tokens of the linked words, in all documents, are in one topic. Links are transitive, also
  through words that do not occur; the cells of a linked group form one item, and what is said about one of its words
  is said about all.
- cannot-link words u, w: no topic has tokens of both.
- seed words: every token of the word is in the given topic, which thereby has a name.
- fixed tokens: the cell (d, v) is in the given topic.
- at most s topics a document: every document has tokens of at most s topics.
- at least m documents a topic: every topic has tokens in at least m documents. (Counted by whole cells: only this
  constraint could gain from a split, which would let one word of a document count for two topics.)

The soft versions subtract from F: for must-linked words their weight times the number of topics, beyond one, that have
tokens of either word; for cannot-linked words times the number of topics that have tokens of both; for seeds and fixed
tokens times the number of tokens outside the topic; for the limits times the topics in excess, summed over documents,
or the documents missing, summed over topics. As the weight grows each becomes its hard version.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsInt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap._numeric.links import compressed_links
from certimap.topics.counts import cells_of, checked_counts
from certimap.topics.objective import Cells, FloatArray, IntArray, TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.reading import (
    Pairs,
    Reader,
    Tokens,
    WeightedPairs,
    WeightedTokens,
    checked_limit,
    checked_pairs,
    checked_topics,
    checked_weight,
    word_name,
)


@dataclass(frozen=True, eq=False)
class TopicProblem:
    """Maximise F(labels) minus the soft penalties, over labellings that satisfy the constraints.

    Attributes:
        prior: prior of the model.
        cells: the nonzero counts.
        n_topics: K; topics may stay empty unless `min_documents` forbids it.
        word_names: names of the words for messages, or None.
        must_links: pairs of words as given, shape (L, 2).
        cell_item: item of every cell, shape (C,): what is assigned; the cells of must-linked words form one item.
        conflict_start, conflict_words: cannot-links as compressed rows, every link in both directions: no topic has
            tokens of word v and of one of ``conflict_words[conflict_start[v]:conflict_start[v + 1]]``. Lifted over
            must-links: where a word of one linked group is apart from a word of another, all pairs of them are.
        fixed: topic an item must be in, or -1, shape (I,).
        max_topics, max_topics_weight: largest number of topics of a document, and what each one more costs; inf: hard.
        min_documents, min_documents_weight: least number of documents of a topic, and what each one less costs.
        soft_pairs: pairs of different words, shape (P, 2), not in one linked group.
        soft_weights: weight of every pair, shape (P,).
        soft_together: whether the pair is a soft must-link or a soft cannot-link, shape (P,).
        wish_items, wish_topics, wish_costs: what it costs if an item is not in a topic, shape (W,), ordered by item.
        soft_constant: cost of the soft cannot-links inside one item, which no labelling avoids.
    """

    prior: TopicPrior
    cells: Cells
    n_topics: int
    word_names: tuple[str, ...] | None
    must_links: IntArray
    cell_item: IntArray
    conflict_start: IntArray
    conflict_words: IntArray
    fixed: IntArray
    max_topics: int
    max_topics_weight: float
    min_documents: int
    min_documents_weight: float
    soft_pairs: IntArray
    soft_weights: FloatArray
    soft_together: NDArray[np.bool_]
    wish_items: IntArray
    wish_topics: IntArray
    wish_costs: FloatArray
    soft_constant: float

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        prior: TopicPrior,
        n_topics: int,
        *,
        must_link_words: Pairs = (),
        cannot_link_words: Pairs = (),
        seed_words: Pairs = (),
        fixed_tokens: Tokens = (),
        max_topics: int | None = None,
        min_documents: int | None = None,
        soft_must_link_words: WeightedPairs = (),
        soft_cannot_link_words: WeightedPairs = (),
        soft_seed_words: WeightedPairs = (),
        soft_fixed_tokens: WeightedTokens = (),
        max_topics_weight: float = math.inf,
        min_documents_weight: float = math.inf,
        word_names: Sequence[str] | None = None,
    ) -> "TopicProblem":
        """Contract the must-links and carry everything else over from words and tokens to items.

        `counts` is dense or sparse, shape (documents, words). Seeds are pairs (word, topic), fixed tokens triples
        (document, word, topic). Raises ValueError for a wrong argument and for constraints that contradict each other
        directly, with the chain of must-links that ties the words.
        """
        matrix = checked_counts(counts)
        cells = cells_of(matrix)
        K = checked_topics(n_topics)
        names = None if word_names is None else tuple(str(name) for name in word_names)
        reader = Reader(cells, matrix, K, names, checked_pairs("must_link_words", must_link_words, cells.n_words))
        apart = checked_pairs("cannot_link_words", cannot_link_words, cells.n_words)
        lifted = reader.lifted(apart)
        fixed = reader.fixed_items(seed_words, fixed_tokens)
        reader.check_apart(lifted, fixed)
        most = checked_limit("max_topics", max_topics, 1, K)
        least = checked_limit("min_documents", min_documents, 0, 0)
        hard_most = most if math.isinf(max_topics_weight) else K
        reader.check_limits(fixed, hard_most, least if math.isinf(min_documents_weight) else 0)
        start, neighbours = compressed_links(lifted, cells.n_words)
        pairs, weights, together, constant = reader.soft_links(soft_must_link_words, soft_cannot_link_words)
        wish_items, wish_topics, wish_costs = reader.wishes(soft_seed_words, soft_fixed_tokens)
        return cls(
            prior=prior,
            cells=cells,
            n_topics=K,
            word_names=names,
            must_links=reader.ties,
            cell_item=reader.cell_item,
            conflict_start=start,
            conflict_words=neighbours,
            fixed=fixed,
            max_topics=most,
            max_topics_weight=checked_weight("max_topics_weight", max_topics_weight),
            min_documents=least,
            min_documents_weight=checked_weight("min_documents_weight", min_documents_weight),
            soft_pairs=pairs,
            soft_weights=weights,
            soft_together=together,
            wish_items=wish_items,
            wish_topics=wish_topics,
            wish_costs=wish_costs,
            soft_constant=constant,
        )

    @property
    def n_items(self) -> int:
        """I."""
        return len(self.fixed)

    @cached_property
    def objective(self) -> TopicObjective:
        """F in closed form, over topics of the cells."""
        return TopicObjective(self.cells, self.prior, self.n_topics)

    def log_map(self, labels: ArrayLike) -> float:
        """Closed-form value of a labelling of the items: F minus the soft penalties."""
        return self.objective.partition_value(self.cell_labels(labels)) - self.soft_penalty(labels)

    def soft_penalty(self, labels: ArrayLike) -> float:
        """What the violated soft constraints cost."""
        document_topic, topic_word = self.objective.token_counts(self.cell_labels(labels))
        words = topic_word > 0
        first, second = words[:, self.soft_pairs[:, 0]], words[:, self.soft_pairs[:, 1]]
        excess = np.where(self.soft_together, np.maximum((first | second).sum(axis=0) - 1, 0), (first & second).sum(0))
        cost = float(self.soft_weights @ excess) + self.soft_constant
        missed = np.asarray(labels)[self.wish_items] != self.wish_topics
        cost += float(self.wish_costs[missed].sum())
        uses = document_topic > 0
        if not math.isinf(self.max_topics_weight):
            cost += self.max_topics_weight * float(np.maximum(uses.sum(axis=1) - self.max_topics, 0).sum())
        if not math.isinf(self.min_documents_weight):
            cost += self.min_documents_weight * float(np.maximum(self.min_documents - uses.sum(axis=0), 0).sum())
        return cost

    def violations(self, labels: ArrayLike) -> list[str]:
        """Every hard constraint that a labelling of the items breaks, in words; empty if it is feasible."""
        assigned = np.asarray(labels)
        document_topic, topic_word = self.objective.token_counts(self.cell_labels(assigned))
        rows = np.repeat(np.arange(self.cells.n_words), np.diff(self.conflict_start))
        found = [
            f"cannot-linked words {self.word_name(u)} and {self.word_name(w)} share topic {k}"
            for u, w in zip(rows, self.conflict_words, strict=True)
            for k in np.flatnonzero((topic_word[:, u] > 0) & (topic_word[:, w] > 0))
            if u < w
        ]
        found += [
            f"item {i} is in topic {assigned[i]}, fixed to {self.fixed[i]}"
            for i in np.flatnonzero((self.fixed >= 0) & (self.fixed != assigned))
        ]
        uses = document_topic > 0
        if math.isinf(self.max_topics_weight):
            found += [
                f"document {d} has {uses[d].sum()} topics, allowed {self.max_topics}"
                for d in np.flatnonzero(uses.sum(axis=1) > self.max_topics)
            ]
        if math.isinf(self.min_documents_weight):
            found += [
                f"topic {k} is in {uses[:, k].sum()} documents, needs {self.min_documents}"
                for k in np.flatnonzero(uses.sum(axis=0) < self.min_documents)
            ]
        return found

    def cell_labels(self, labels: ArrayLike) -> IntArray:
        """Topics of the cells from labels of the items."""
        return np.asarray(labels, dtype=np.int64)[self.cell_item]

    def item_labels(self, cell_labels: ArrayLike) -> IntArray:
        """Labels of the items from topics of the cells; ValueError if a must-link is broken."""
        given = np.asarray(cell_labels, dtype=np.int64)
        labels = np.zeros(self.n_items, dtype=np.int64)
        labels[self.cell_item] = given
        broken = np.flatnonzero(labels[self.cell_item] != given)
        if len(broken):
            raise ValueError(f"labels must agree on tied cells, got {given[broken[0]]} for cell {broken[0]}.")
        return labels

    def word_name(self, word: SupportsInt) -> str:
        """The word in messages."""
        return word_name(self.word_names, word)
