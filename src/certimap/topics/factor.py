"""The topic model as a model: a Partition factor over the cells with the value c(S) of `objective`, and constraints.

    m = Model()
    z = m.categorical("z", K, shape=C)
    m.add(topic_clusters(z, cells, TopicPrior(1.1, 1.1)))

A certificate of topics refers to such a model: `topic_model` builds the one that belongs to a problem.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from certimap.model.constraints import at_least, cannot_link, fix, must_link
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable
from certimap.model.model import Model
from certimap.model.partition import Partition, partition_items
from certimap.topics.objective import Cells, TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem


@dataclass(eq=False)
class TopicClusters(Partition):
    """c(S) of topics over cells; -inf for a topic with tokens in fewer than `min_documents` documents.

    c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a), see `certimap.topics.objective`.
    """

    kind: ClassVar[str] = "topic_clusters"
    items: tuple[Variable, ...]
    cells: Cells
    prior: TopicPrior
    min_documents: int = 0
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)
    objective: TopicObjective = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for z in self.items for a in z.indicators())
        self.objective = TopicObjective(self.cells, self.prior, self.n_clusters)

    @property
    def signature(self) -> Hashable:
        return (len(self.cells), self.cells.n_documents, self.cells.n_words, self.n_clusters)

    def arrays(self) -> dict[str, NDArray[Any]]:
        cells = self.cells
        return {
            "document": cells.document,
            "word": cells.word,
            "count": cells.count,
            "shape": np.array([cells.n_documents, cells.n_words]),
            "prior": np.array([self.prior.alpha, self.prior.eta]),
            "min_documents": np.array(self.min_documents),
        }

    def cluster_value(self, members: NDArray[np.int64]) -> float:
        if self.min_documents and len(np.unique(self.cells.document[members])) < self.min_documents:
            return -math.inf
        return self.objective.value(members)


def topic_clusters(
    items: Any, cells: Cells, prior: TopicPrior, *, min_documents: int = 0, name: str = ""
) -> TopicClusters:
    """Cell c joins topic z_c; with `min_documents`, every topic has tokens in at least so many documents."""
    variables = partition_items(items, "topic_clusters")
    if len(variables) != len(cells):
        raise ModelError(f"topic_clusters: there are {len(cells)} cells, but {len(variables)} items")
    return TopicClusters(variables, cells, prior, min_documents, name)


def topic_model(problem: TopicProblem) -> Model:
    """The model of a topic problem, over the topics "z" of its cells; equal problems give equal fingerprints.

    ModelError for what such a model cannot say: soft constraints, and a limit on the topics of a document.
    """
    if inexpressible(problem):
        raise ModelError(f"topic_model: {inexpressible(problem)}")
    model = Model()
    z = model.categorical("z", problem.n_topics, shape=len(problem.cells))
    least = problem.min_documents
    model.add(topic_clusters(z, problem.cells, problem.prior, min_documents=least))
    first = np.unique(problem.cell_item, return_index=True)[1]
    for c, item in enumerate(problem.cell_item):
        if c != first[item]:
            model.constrain(must_link(z[first[item]], z[c]))
    for i, j in conflicting_items(problem):
        model.constrain(cannot_link(z[first[i]], z[first[j]]))
    for item in np.flatnonzero(problem.fixed >= 0):
        model.constrain(fix(z[first[item]], int(problem.fixed[item])))
    if least > 0:  # what the value says already; here for whoever reads the rules only
        model.constrain([at_least(1, z, value=k) for k in range(problem.n_topics)])
    model.add(LinearExpression({}, problem.objective.constant))
    return model


def inexpressible(problem: TopicProblem) -> str:
    """What keeps the problem from being a partition into topics of equal rules; empty if nothing does."""
    if len(problem.soft_pairs) or len(problem.wish_items) or problem.soft_constant:
        return "soft constraints on words or tokens"
    if problem.max_topics < problem.n_topics:
        return "a limit on the topics of a document"
    if problem.min_documents and not math.isinf(problem.min_documents_weight):
        return "a soft limit on the documents of a topic"
    return ""


def conflicting_items(problem: TopicProblem) -> list[tuple[int, int]]:
    """Pairs of items that no topic may hold together, the smaller first: those of cannot-linked words."""
    word = problem.cells.word
    items_of = [np.unique(problem.cell_item[word == v]) for v in range(problem.cells.n_words)]
    rows = np.repeat(np.arange(problem.cells.n_words), np.diff(problem.conflict_start))
    pairs = {
        (int(min(i, j)), int(max(i, j)))
        for u, v in zip(rows, problem.conflict_words, strict=True)
        if u < v
        for i in items_of[u]
        for j in items_of[v]
    }
    return sorted(pairs)
