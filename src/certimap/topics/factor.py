"""The topic model as a model: a Partition factor over the cells with the value c(S) of `objective`, and constraints.

    m = Model()
    z = m.categorical("z", K, shape=C)
    m.add(topic_clusters(z, cells, TopicPrior(1.1, 1.1)))

A certificate of topics refers to such a model: `topic_model` builds the one that belongs to a problem. Soft constraints
are charged to the topics (`charges`).
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
from certimap.topics.charges import Charges, first_cells
from certimap.topics.objective import Cells, IntArray, TopicObjective
from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem


@dataclass(eq=False)
class TopicClusters(Partition):
    """c(S) of topics over cells and anchors, less what they are charged; -inf for a topic in too few documents.

    c(S) = sum_v phi(n_v + e) - phi(n + V e) + sum_d phi(n_d + a), see `certimap.topics.objective`.
    """

    kind: ClassVar[str] = "topic_clusters"
    items: tuple[Variable, ...]
    cells: Cells
    prior: TopicPrior
    charges: Charges
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
            "min_documents": np.array(self.charges.min_documents),
            **self.charges.arrays,
        }

    def cluster_value(self, members: NDArray[np.int64]) -> float:
        own = members[members < len(self.cells)]
        return self.objective.value(own) - self.charges.of_topic(self.cells, members)

    def value(self, y: NDArray[np.float64]) -> float:
        labels = y.reshape(len(self.items), self.n_clusters).argmax(axis=1)
        return super().value(y) - self.charges.excess(self.cells, labels, self.n_clusters)


def topic_clusters(
    items: Any, cells: Cells, prior: TopicPrior, *, charges: Charges | None = None, name: str = ""
) -> TopicClusters:
    """Cell c joins topic z_c; the items after the cells are the anchors of the charges, to be fixed to their topics."""
    charges = charges or Charges.none()
    variables = partition_items(items, "topic_clusters")
    if len(variables) != len(cells) + charges.n_anchors:
        anchors = f" and {charges.n_anchors} anchors" if charges.n_anchors else ""
        raise ModelError(f"topic_clusters: there are {len(cells)} cells{anchors}, but {len(variables)} items")
    return TopicClusters(variables, cells, prior, charges, name)


def topic_model(problem: TopicProblem) -> Model:
    """The model of a topic problem, over the topics "z" of its cells; equal problems give equal fingerprints.

    Where topics are wished for, "topic" holds their anchors.
    """
    model = Model()
    charges = Charges.of(problem)
    z = model.categorical("z", problem.n_topics, shape=len(problem.cells))
    items = list(z)
    if charges.n_anchors:
        anchors = model.categorical("topic", problem.n_topics, shape=charges.n_anchors)
        model.constrain([fix(t, int(k)) for t, k in zip(anchors, charges.anchor_topics, strict=True)])
        items += list(anchors)
    model.add(topic_clusters(items, problem.cells, problem.prior, charges=charges))
    first = first_cells(problem)
    for c, item in enumerate(problem.cell_item):
        if c != first[item]:
            model.constrain(must_link(z[first[item]], z[c]))
    if problem.max_topics == 1 < problem.n_topics and math.isinf(problem.max_topics_weight):
        document = problem.cells.document
        model.constrain([must_link(z[c - 1], z[c]) for c in range(1, len(z)) if document[c - 1] == document[c]])
    for i, j in conflicting_items(problem):
        model.constrain(cannot_link(z[first[i]], z[first[j]]))
    for item in np.flatnonzero(problem.fixed >= 0):
        model.constrain(fix(z[first[item]], int(problem.fixed[item])))
    if problem.min_documents > 0 and not charges.soft_documents:
        # What the value says already; here for whoever reads the rules only.
        model.constrain([at_least(1, items, value=k) for k in range(problem.n_topics)])
    model.add(LinearExpression({}, problem.objective.constant + charges.free(problem.cells) - problem.soft_constant))
    return model


def model_labels(problem: TopicProblem, labels: IntArray) -> dict[str, IntArray]:
    """The point of `topic_model` with these topics of the items."""
    anchors = Charges.of(problem).anchor_topics
    return {"z": problem.cell_labels(labels), **({"topic": anchors} if len(anchors) else {})}


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
