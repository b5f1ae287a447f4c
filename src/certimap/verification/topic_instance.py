"""The pricing problem of topics in float64, with what its numbers may err by.

Every document and every word is a factor: a convex function h_f of its tokens n_f in the topic, phi(n_f + a) or
phi(n_f + e). A group of cells that belong together adds `tokens` of an arc to each factor it has an arc to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from certimap.verification.intervals import margin
from certimap.verification.subsets import GroupRules
from certimap.verification.topic_values import TopicValues, phi

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Instance:
    """Arcs are numbered by factor, documents first; those of one group are `order[first[g]:first[g+1]]`.

    Attributes:
        group, tokens, factor: of every arc.
        start: arcs of factor f are start[f] .. start[f + 1] - 1.
        order, first: arcs by group.
        table, table_start: h_f(0 .. N_f) of every factor, one after the other.
        normaliser: phi(n + V e) for n = 0 .. N.
        size: tokens of every group.
        per_factor: tokens of every group in every factor, shape (F, G).
        documents: of every group, their number.
        price: of every group, correctly rounded.
        apart: whether two groups exclude each other, shape (G, G); None where none do.
        n_documents: the factors before this one are documents.
        min_documents: of a topic.
        mass: V e.
        magnitude: of all terms of c(S) - lambda(S) together.
        value_error: what a value or a gain may err by.
    """

    group: Ints
    tokens: Ints
    factor: Ints
    start: Ints
    order: Ints
    first: Ints
    table: Floats
    table_start: Ints
    normaliser: Floats
    size: Ints
    per_factor: Floats
    documents: Ints
    price: Floats
    apart: Floats | None
    n_documents: int
    min_documents: int
    mass: float
    magnitude: float
    value_error: float

    @property
    def n_factors(self) -> int:
        return len(self.start) - 1

    @property
    def n_groups(self) -> int:
        return len(self.size)

    @property
    def highest(self) -> Ints:
        """N_f."""
        return np.asarray(np.diff(self.table_start) - 1)


def instance_of(values: TopicValues, rules: GroupRules, prices: Sequence[Fraction]) -> Instance:
    """The sets of whole groups that respect the pairs apart and the number of documents; sizes are left to others."""
    D, G = values.n_documents, len(rules.groups)
    F = D + values.n_words
    per_factor = np.zeros((F, G), dtype=np.int64)
    for g, members in enumerate(rules.groups):
        for i in members:
            per_factor[values.document[i], g] += values.count[i]
            per_factor[D + values.word[i], g] += values.count[i]
    factor, group = (np.asarray(axis, dtype=np.int64) for axis in np.nonzero(per_factor))
    highest = per_factor.sum(axis=1)
    tables = [
        np.array([float(phi(n + (values.a if f < D else values.e))) for n in range(int(highest[f]) + 1)])
        for f in range(F)
    ]
    total = int(highest[:D].sum())
    normaliser = np.array([float(phi(n + values.mass)) for n in range(total + 1)])
    price = np.array([float(p) for p in prices])
    magnitude = float(sum(np.abs(t).max() for t in tables) + np.abs(normaliser).max() + np.abs(price).sum())
    apart = np.zeros((G, G))
    for g, h in rules.apart:
        apart[g, h] = apart[h, g] = 1.0
    return Instance(
        group=group,
        tokens=per_factor[factor, group],
        factor=factor,
        start=np.searchsorted(factor, np.arange(F + 1)).astype(np.int64),
        order=np.argsort(group, kind="stable").astype(np.int64),
        first=np.concatenate([[0], np.cumsum(np.bincount(group, minlength=G))]).astype(np.int64),
        table=np.concatenate(tables),
        table_start=np.concatenate([[0], np.cumsum(highest + 1)]).astype(np.int64),
        normaliser=normaliser,
        size=per_factor[:D].sum(axis=0),
        per_factor=per_factor.astype(float),
        documents=(per_factor[:D] > 0).sum(axis=0),
        price=price,
        apart=apart if len(rules.apart) else None,
        n_documents=D,
        min_documents=values.min_documents,
        mass=float(values.mass),
        magnitude=magnitude,
        # Tables, prices and the mass are rounded once; a value adds fewer than F + G + 3 of them.
        value_error=margin(F + G + 10, magnitude),
    )
