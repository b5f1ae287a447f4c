"""The problem and the state of one search as flat arrays for the compiled search.

Values come from lookup tables of phi(x) = x log x, because every argument is a whole number of tokens plus a constant.
Hard constraints are counted: a state knows by how many units it violates them, and moves compare states by this count
first and the value second. So the search repairs where it has to, and keeps what is feasible feasible.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from certimap.topics.objective import FloatArray, IntArray
from certimap.topics.problem import TopicProblem

VALUE, VIOLATION = range(2)


class Tables(NamedTuple):
    """phi(x + a) up to the longest document, phi(x + e) up to the most frequent word, phi(x + V e) up to all tokens."""

    document: FloatArray
    word: FloatArray
    topic: FloatArray


class Instance(NamedTuple):
    """Read-only arrays of a problem.

    Cells are ordered by document; `word_cells` lists them by word, `item_cells` by item. `movable` cells are items of
    their own that are not fixed. `slack` is the most that the soft constraints can gain when an item moves.
    `constrained` says whether any constraint but `fixed` is present.
    """

    n_topics: int
    document: IntArray
    word: IntArray
    tokens: IntArray
    cell_item: IntArray
    item_start: IntArray
    item_cells: IntArray
    document_start: IntArray
    word_start: IntArray
    word_cells: IntArray
    movable: NDArray[np.bool_]
    tables: Tables
    fixed: IntArray
    conflict_start: IntArray
    conflict_words: IntArray
    max_topics: int
    max_topics_weight: float
    min_documents: int
    min_documents_weight: float
    pair_start: IntArray
    pair_words: IntArray
    pair_weights: FloatArray
    pair_together: NDArray[np.bool_]
    wish_start: IntArray
    wish_topics: IntArray
    wish_costs: FloatArray
    slack: FloatArray
    constrained: bool
    offset: float


class State(NamedTuple):
    """Labels of the items, and what is counted from them.

    `by_document` is n_dk, shape (D, K); `by_word` n_kv as (V, K); `totals` n_k; `document_topics` the number of topics
    of every document and `topic_documents` the number of documents of every topic; `score` holds the value without the
    instance's offset and the violation.
    """

    labels: IntArray
    by_document: IntArray
    by_word: IntArray
    totals: IntArray
    document_topics: IntArray
    topic_documents: IntArray
    score: FloatArray


def compile_problem(problem: TopicProblem) -> Instance:
    """Arrays of the problem.

    Copies of the problem's read-only arrays: compiled code tells them apart from writable ones, and would be compiled
    anew for each mixture of the two.
    """
    cells, K, n_items = problem.cells, problem.n_topics, problem.n_items
    D, V = cells.n_documents, cells.n_words
    a, e = problem.prior.a, problem.prior.e
    tokens = int(cells.count.sum())
    longest = int(np.bincount(cells.document, weights=cells.count, minlength=1).max(initial=0))
    commonest = int(np.bincount(cells.word, weights=cells.count, minlength=1).max(initial=0))
    pair_start, pair_words, pair_weights, pair_together = _pair_rows(problem)
    together = float(problem.soft_weights[problem.soft_together].sum())
    return Instance(
        n_topics=K,
        document=cells.document.copy(),
        word=cells.word.copy(),
        tokens=cells.count.copy(),
        cell_item=problem.cell_item.copy(),
        item_start=_starts(problem.cell_item, n_items),
        item_cells=np.argsort(problem.cell_item, kind="stable"),
        document_start=_starts(cells.document, D),
        word_start=_starts(cells.word, V),
        word_cells=np.argsort(cells.word, kind="stable"),
        movable=(problem.fixed < 0)[problem.cell_item] & (np.bincount(problem.cell_item) == 1)[problem.cell_item],
        tables=Tables(_table(longest, a), _table(commonest, e), _table(tokens, V * e)),
        fixed=problem.fixed.copy(),
        conflict_start=problem.conflict_start.copy(),
        conflict_words=problem.conflict_words.copy(),
        max_topics=problem.max_topics,
        max_topics_weight=problem.max_topics_weight,
        min_documents=problem.min_documents,
        min_documents_weight=problem.min_documents_weight,
        pair_start=pair_start,
        pair_words=pair_words,
        pair_weights=pair_weights,
        pair_together=pair_together,
        wish_start=_starts(problem.wish_items, n_items),
        wish_topics=problem.wish_topics.copy(),
        wish_costs=problem.wish_costs.copy(),
        slack=_slack(problem),
        constrained=_constrained(problem),
        # Every topic that has a word of a soft must-link is charged, one of them too many.
        offset=problem.objective.constant - problem.soft_constant + together,
    )


def new_state(instance: Instance, labels: IntArray) -> State:
    """Empty counts around the given labels; `recount` fills them."""
    D, V, K = len(instance.document_start) - 1, len(instance.word_start) - 1, instance.n_topics
    return State(
        labels=labels,
        by_document=np.zeros((D, K), dtype=np.int64),
        by_word=np.zeros((V, K), dtype=np.int64),
        totals=np.zeros(K, dtype=np.int64),
        document_topics=np.zeros(D, dtype=np.int64),
        topic_documents=np.zeros(K, dtype=np.int64),
        score=np.zeros(2),
    )


def _table(most: int, shift: float) -> FloatArray:
    x = np.arange(most + 1) + shift
    return np.asarray(xlogy(x, x))


def _starts(group: IntArray, size: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=size))]).astype(np.int64)


def _constrained(problem: TopicProblem) -> bool:
    return bool(
        len(problem.conflict_words)
        or problem.max_topics < problem.n_topics
        or problem.min_documents > 0
        or len(problem.soft_pairs)
        or len(problem.wish_items)
    )


def _pair_rows(problem: TopicProblem) -> tuple[IntArray, IntArray, FloatArray, NDArray[np.bool_]]:
    """Soft links as compressed rows, both directions."""
    ends = np.concatenate([problem.soft_pairs, problem.soft_pairs[:, ::-1]])
    order = np.argsort(ends[:, 0], kind="stable")
    weights, together = np.tile(problem.soft_weights, 2), np.tile(problem.soft_together, 2)
    start = _starts(ends[:, 0], problem.cells.n_words)
    return start, np.ascontiguousarray(ends[order, 1]), weights[order], together[order]


def _slack(problem: TopicProblem) -> FloatArray:
    """A bound on what the soft constraints gain when an item moves from one topic to another."""
    cells = problem.cells
    per_word = np.zeros(cells.n_words)
    np.add.at(per_word, problem.soft_pairs.ravel(), np.repeat(problem.soft_weights, 2))
    per_cell = per_word[cells.word]
    for weight, present in (
        (problem.max_topics_weight, problem.max_topics < problem.n_topics),
        (problem.min_documents_weight, problem.min_documents > 0),
    ):
        if present and not math.isinf(weight):
            per_cell = per_cell + weight
    slack = np.bincount(problem.cell_item, weights=per_cell, minlength=problem.n_items)
    np.add.at(slack, problem.wish_items, problem.wish_costs)
    return np.asarray(slack, dtype=np.float64)
