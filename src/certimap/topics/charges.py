"""Soft constraints as terms of single topics, so that topics stay exchangeable and a bound covers them.

With [.] 1 or 0, a topic S is charged

- must-linked words u, w:   weight [n_u + n_w > 0]: the number of topics that have tokens of either; one is free;
- cannot-linked words u, w: weight [n_u > 0] [n_w > 0] = weight ([n_u > 0] + [n_w > 0] - [n_u + n_w > 0]);
- wishes (soft seeds and fixed tokens): nothing, but it gains what the wish costs if it holds the item and the *anchor*
  of the topic that is wished for. An anchor is one more item, without tokens, that is fixed to its topic: it gives
  topics names although they are exchangeable;
- at most one topic a document: weight for every document that it has tokens of; one topic of each document is free;
- at least m documents a topic: weight max(0, m - documents of S).

Limits of two and more topics a document tie topics to each other. They are left out of c(S), so that sums of c(S) are
too large by `excess` and a bound on these holds all the more; `TopicClusters.value` subtracts it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from certimap.topics.objective import Cells, FloatArray, IntArray
from certimap.topics.problem import TopicProblem


@dataclass(frozen=True, eq=False)
class Charges:
    """Attributes:
    pair_words, pair_weights, pair_together: words that occur, their weight, must-link or cannot-link.
    wish_cells, wish_anchors, wish_costs: the first cell of an item, the anchor, and what missing it costs.
    anchor_topics: the topic of every anchor.
    document_cost: of every document that a topic has tokens of.
    max_topics, max_topics_weight: limit that `excess` is about, 0 for none; inf: hard.
    min_documents, min_documents_weight: of a topic; inf: hard.
    """

    pair_words: IntArray
    pair_weights: FloatArray
    pair_together: NDArray[np.bool_]
    wish_cells: IntArray
    wish_anchors: IntArray
    wish_costs: FloatArray
    anchor_topics: IntArray
    document_cost: float
    max_topics: int
    max_topics_weight: float
    min_documents: int
    min_documents_weight: float

    @staticmethod
    def none(min_documents: int = 0) -> Charges:
        """Of a problem without soft constraints."""
        no_numbers, no_words = np.zeros(0), np.zeros(0, dtype=np.int64)
        return Charges(
            pair_words=np.zeros((0, 2), dtype=np.int64),
            pair_weights=no_numbers,
            pair_together=np.zeros(0, dtype=bool),
            wish_cells=no_words,
            wish_anchors=no_words,
            wish_costs=no_numbers,
            anchor_topics=no_words,
            document_cost=0.0,
            max_topics=0,
            max_topics_weight=math.inf,
            min_documents=min_documents,
            min_documents_weight=math.inf,
        )

    @staticmethod
    def of(problem: TopicProblem) -> Charges:
        """The soft constraints of a problem; with weight 0 there is nothing to charge."""
        occurs = np.bincount(problem.cells.word, minlength=problem.cells.n_words) > 0
        u_occurs, w_occurs = occurs[problem.soft_pairs].T
        pairs = np.where(problem.soft_together, u_occurs | w_occurs, u_occurs & w_occurs) & (problem.soft_weights > 0.0)
        wishes = problem.wish_costs > 0.0
        topics, anchors = np.unique(problem.wish_topics[wishes], return_inverse=True)
        limited = problem.max_topics < problem.n_topics
        soft_one = limited and problem.max_topics == 1 and math.isfinite(problem.max_topics_weight)
        return Charges(
            pair_words=problem.soft_pairs[pairs],
            pair_weights=problem.soft_weights[pairs],
            pair_together=problem.soft_together[pairs],
            wish_cells=first_cells(problem)[problem.wish_items[wishes]],
            wish_anchors=anchors.astype(np.int64),
            wish_costs=problem.wish_costs[wishes],
            anchor_topics=topics.astype(np.int64),
            document_cost=problem.max_topics_weight if soft_one else 0.0,
            max_topics=problem.max_topics if limited and problem.max_topics > 1 else 0,
            max_topics_weight=problem.max_topics_weight,
            min_documents=problem.min_documents,
            min_documents_weight=problem.min_documents_weight,
        )

    @property
    def n_anchors(self) -> int:
        return len(self.anchor_topics)

    def free(self, cells: Cells) -> float:
        """What every assignment is charged too much."""
        documents = len(np.unique(cells.document))
        links = float(self.pair_weights[self.pair_together].sum())
        return links + self.document_cost * documents - float(self.wish_costs.sum())

    def missing_documents(self, n_documents: int) -> float:
        """What it costs a topic to have tokens in so few documents."""
        missing = max(0, self.min_documents - n_documents)
        return self.min_documents_weight * missing if missing else 0.0

    def of_topic(self, cells: Cells, members: IntArray) -> float:
        """What the topic with these items is charged; anchors are numbered after the cells."""
        own = members[members < len(cells)]
        documents = len(np.unique(cells.document[own]))
        has_word = np.bincount(cells.word[own], minlength=cells.n_words) > 0
        u, w = has_word[self.pair_words].T
        cost = float(self.pair_weights @ np.where(self.pair_together, u | w, u & w))
        cost += self.document_cost * documents + self.missing_documents(documents)
        holds = np.zeros(len(cells) + self.n_anchors, dtype=bool)
        holds[members] = True
        return cost - float(self.wish_costs @ (holds[self.wish_cells] & holds[len(cells) + self.wish_anchors]))

    def excess(self, cells: Cells, labels: IntArray, n_topics: int) -> float:
        """What a limit on the topics of a document costs, where it is not charged to single topics."""
        if not self.max_topics:
            return 0.0
        topics = np.zeros((cells.n_documents, n_topics), dtype=bool)
        topics[cells.document, labels[: len(cells)]] = True
        beyond = int(np.maximum(topics.sum(axis=1) - self.max_topics, 0).sum())
        return self.max_topics_weight * beyond if beyond else 0.0

    @cached_property
    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """For the fingerprint of a model, and for whoever verifies; empty where nothing is charged."""
        if not (len(self.pair_words) or self.n_anchors or self.document_cost or self.max_topics):
            return {"min_documents_weight": np.array(self.min_documents_weight)} if self.soft_documents else {}
        return {
            "pair_words": self.pair_words.astype(float),
            "pair_weights": self.pair_weights,
            "pair_together": self.pair_together.astype(float),
            "wish_cells": self.wish_cells.astype(float),
            "wish_anchors": self.wish_anchors.astype(float),
            "wish_costs": self.wish_costs,
            "n_anchors": np.array(float(self.n_anchors)),
            "document_cost": np.array(self.document_cost),
            "max_topics": np.array(float(self.max_topics)),
            "max_topics_weight": np.array(self.max_topics_weight),
            "min_documents_weight": np.array(self.min_documents_weight),
        }

    @property
    def soft_documents(self) -> bool:
        return self.min_documents > 0 and math.isfinite(self.min_documents_weight)


def first_cells(problem: TopicProblem) -> IntArray:
    """The first cell of every item."""
    return np.unique(problem.cell_item, return_index=True)[1].astype(np.int64)
