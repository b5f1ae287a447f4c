"""The pricing problem of topics in float64, with what its numbers may err by.

Every document and every word is a factor: a function h_f of its tokens n_f in the topic, phi(n_f + a) or phi(n_f + e).
A group of cells that belong together adds `tokens` of an arc to each factor it has an arc to. What soft constraints
charge are jumps between 0 tokens and one: of documents, of words, and of one more factor for every pair of words,

    [both] = [u] + [w] - [either].

A wish is a factor in which its item and its anchor count one each, with the table 0, 0, cost. Without the jumps all
factors are convex.
"""

from __future__ import annotations

import math
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
        jump: of every factor, between 0 tokens and one.
        n_documents: the factors before this one are documents.
        n_counted: the factors before this one are documents and words.
        min_documents: of a topic.
        missing_cost: of every document less; inf: not allowed.
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
    jump: Floats
    n_documents: int
    n_counted: int
    min_documents: int
    missing_cost: float
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

    def missing(self, documents: Ints) -> Floats:
        """What so few documents cost; inf where they are not allowed."""
        short = np.maximum(self.min_documents - documents, 0)
        return np.where(short > 0, self.missing_cost * np.maximum(short, 1), 0.0)


def instance_of(values: TopicValues, rules: GroupRules, prices: Sequence[Fraction]) -> Instance:
    """The sets of whole groups that respect the pairs apart and the number of documents; sizes are left to others."""
    D, V, G = values.n_documents, values.n_words, len(rules.groups)
    first_wish = D + V + len(values.pairs)
    F = first_wish + len(values.wishes)
    group_of = {i: g for g, members in enumerate(rules.groups) for i in members}
    per_factor = np.zeros((F, G), dtype=np.int64)
    for i, (d, v, count) in enumerate(zip(values.document, values.word, values.count, strict=True)):
        pairs = (D + V + p for p, (u, w, _, _) in enumerate(values.pairs) if v in (u, w))
        for f in (d, D + v, *pairs):
            per_factor[f, group_of[i]] += count
    for q, (i, k, _) in enumerate(values.wishes):
        per_factor[first_wish + q, group_of[i]] += 1
        per_factor[first_wish + q, group_of[k]] += 1
    factor, group = (np.asarray(axis, dtype=np.int64) for axis in np.nonzero(per_factor))
    highest = per_factor.sum(axis=1)
    jump = [-values.document_cost] * D + [Fraction(0)] * (F - D)
    for p, (u, w, weight, together) in enumerate(values.pairs):
        jump[D + V + p] += -weight if together else weight
        if not together:
            jump[D + u] -= weight
            jump[D + w] -= weight
    tables = []
    for f in range(D + V):
        shift = values.a if f < D else values.e
        tables.append(np.array([float(phi(n + shift) + (jump[f] if n else 0)) for n in range(int(highest[f]) + 1)]))
    tables += [np.array([0.0] + [float(jump[f])] * int(highest[f])) for f in range(D + V, first_wish)]
    tables += [np.array([0.0, 0.0, float(cost)]) for _, _, cost in values.wishes]
    total = int(highest[:D].sum())
    normaliser = np.array([float(phi(n + values.mass)) for n in range(total + 1)])
    price = np.array([float(p) for p in prices])
    magnitude = float(sum(np.abs(t).max() for t in tables) + np.abs(normaliser).max() + np.abs(price).sum())
    jumps = np.array([float(height) for height in jump])
    missing_cost = math.inf if values.missing_cost is None else float(values.missing_cost)
    magnitude += float(np.abs(jumps).sum())
    magnitude += missing_cost * values.min_documents if math.isfinite(missing_cost) else 0.0
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
        jump=jumps,
        n_documents=D,
        n_counted=D + V,
        min_documents=values.min_documents,
        missing_cost=missing_cost,
        mass=float(values.mass),
        magnitude=magnitude,
        # Tables, prices and the mass are rounded once; a value adds fewer than F + G + 3 of them.
        value_error=margin(F + G + 10, magnitude),
    )
