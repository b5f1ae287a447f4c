"""A feasible labelling by integer programming, for the problems on which starts and their repair fail."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem

# Above this many binaries the relaxation alone may take longer than the whole search.
_MOST_VARIABLES = 100_000


@dataclass(frozen=True)
class Feasibility:
    """A feasible labelling, or none and whether that is proved."""

    labels: IntArray | None
    proved_infeasible: bool


def find_feasible(problem: TopicProblem, seed: int, node_limit: int = 20_000) -> Feasibility:
    """Solve for binary z_ik, one topic an item, with u_vk for words and y_dk for documents that have topic k.

    Cannot-links are u_vk + u_wk <= 1, the limits sums of y; z <= u, z <= y, and y_dk <= sum of the document's z_ik.
    A random objective decides between feasible labellings.
    """
    cells, K, n_items = problem.cells, problem.n_topics, problem.n_items
    D, V = cells.n_documents, cells.n_words
    width = (n_items + V + D) * K
    if width > _MOST_VARIABLES:
        return Feasibility(None, proved_infeasible=False)
    z, u, y = np.split(np.arange(width).reshape(-1, K), [n_items, n_items + V])
    document_items = np.unique(np.stack([cells.document, problem.cell_item]), axis=1)
    word_items = np.unique(np.stack([cells.word, problem.cell_item]), axis=1)
    rows = np.repeat(np.arange(V), np.diff(problem.conflict_start))
    once = rows < problem.conflict_words
    links = u[rows[once]], u[problem.conflict_words[once]]
    implications = [(z[document_items[1]], y[document_items[0]]), (z[word_items[1]], u[word_items[0]])]
    constraints = [_sums([z], width, 1, 1)]
    constraints += [_rows([(a.ravel(), 1.0), (b.ravel(), -1.0)], width, -np.inf, 0.0) for a, b in implications]
    if once.any():
        constraints.append(_rows([(links[0].ravel(), 1.0), (links[1].ravel(), 1.0)], width, -np.inf, 1.0))
    if math.isinf(problem.max_topics_weight):
        constraints.append(_sums([y], width, 0, problem.max_topics))
    if problem.min_documents > 0 and math.isinf(problem.min_documents_weight):
        constraints.append(_sums([y.T], width, problem.min_documents, D))
        constraints.append(_present(y, z, document_items, width))
    lower, upper = np.zeros(width), np.ones(width)
    pinned = np.flatnonzero(problem.fixed >= 0)
    upper[z[pinned]] = 0.0
    lower[z[pinned, problem.fixed[pinned]]] = upper[z[pinned, problem.fixed[pinned]]] = 1.0
    result = milp(
        np.random.default_rng(seed).random(width),
        integrality=np.ones(width, dtype=np.int64),
        bounds=Bounds(lower, upper),
        constraints=constraints,
        options={"node_limit": node_limit, "mip_rel_gap": 1e9},
    )
    if result.x is None:
        return Feasibility(None, proved_infeasible=result.status == 2)
    labels = np.asarray(result.x)[z].argmax(axis=1).astype(np.int64)
    return Feasibility(None if problem.violations(labels) else labels, proved_infeasible=False)


def _sums(groups: list[IntArray], width: int, least: float, most: float) -> LinearConstraint:
    """The variables of every row add up to between `least` and `most`."""
    columns = np.concatenate(groups)
    return LinearConstraint(
        _matrix(np.repeat(np.arange(len(columns)), columns.shape[1]), columns, 1.0, width), least, most
    )


def _rows(terms: list[tuple[IntArray, float]], width: int, least: float, most: float) -> LinearConstraint:
    """One variable of each term in every row."""
    first, *others = (_matrix(np.arange(len(columns)), columns, value, width) for columns, value in terms)
    matrix: Any = sum(others, first)
    return LinearConstraint(matrix, least, most)


def _present(y: IntArray, z: IntArray, document_items: IntArray, width: int) -> LinearConstraint:
    """A document counts for a topic only if one of its items is there; empty documents never do."""
    K = y.shape[1]
    rows = (document_items[0][:, None] * K + np.arange(K)).ravel()
    matrix = _matrix(np.arange(y.size), y, 1.0, width) - _matrix(rows, z[document_items[1]], 1.0, width, y.size)
    return LinearConstraint(matrix, -np.inf, 0.0)


def _matrix(rows: IntArray, columns: IntArray, value: float, width: int, height: int | None = None) -> csr_array:
    flat: NDArray[Any] = columns.ravel()
    height = int(rows.max()) + 1 if height is None else height
    return coo_array((np.full(len(flat), value), (rows, flat)), shape=(height, width)).tocsr()
