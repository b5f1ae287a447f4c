"""The pricing problem max over S of c(S) - lambda(S) as flat arrays, in terms of groups of tied cells.

Every document and every word is a *factor*: a function h_f of the number n_f of its tokens in the topic, phi(n_f + a)
or phi(n_f + e). Group g adds `arc_tokens` tokens to each factor it has an *arc* to, so that with n tokens in the topic

    c(S) = sum_f h_f(n_f) - phi(n + V e).

What topics are charged (`charges`) enters as jumps of h_f between 0 tokens and one, of documents, of words, and of
further factors for pairs of words; a wish is a factor of its item and its anchor, h(2) = what it costs to miss it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from certimap.oracles.partition import ColumnRules
from certimap.topics.charges import Charges
from certimap.topics.objective import Cells, FloatArray, IntArray
from certimap.topics.prior import TopicPrior

Flags = NDArray[np.int8]


class PricingArrays(NamedTuple):
    """Compressed rows; arcs are numbered by factor, documents first.

    Attributes:
        start: arcs of factor f are start[f] .. start[f + 1] - 1.
        group, arc_tokens, factor: of every arc.
        table_start, table: h_f(0 .. N_f) of every factor.
        arc_start, arcs: arcs of group g are arcs[arc_start[g] : arc_start[g + 1]], those of documents first.
        tokens: of every group.
        normaliser: phi(n + V e) for n = 0 .. N.
        foe_start, foes: groups that no topic holds together with group g.
        jump: of every factor: h_f without `jump` [n_f > 0] is convex.
        n_documents: the factors before this one are documents.
        n_counted: the factors before this one are documents and words, which count every token once.
        min_documents: of a topic.
        missing_cost: of every document less; inf: not allowed.
        mass: V e.
        magnitude: sum over the factors of max |h_f| and max n_f + a or e, and the same of the normaliser: what
            rounding errors of values are relative to.
    """

    start: IntArray
    group: IntArray
    arc_tokens: IntArray
    factor: IntArray
    table_start: IntArray
    table: FloatArray
    arc_start: IntArray
    arcs: IntArray
    tokens: IntArray
    normaliser: FloatArray
    foe_start: IntArray
    foes: IntArray
    jump: FloatArray
    n_documents: int
    n_counted: int
    min_documents: int
    missing_cost: float
    mass: float
    magnitude: float


def pricing_arrays(cells: Cells, prior: TopicPrior, rules: ColumnRules, charges: Charges) -> PricingArrays:
    """The arrays of the topics over these cells, and the anchors of the charges, that respect the rules."""
    D, V, G, C = cells.n_documents, cells.n_words, rules.n_groups, len(cells)
    F = D + V + len(charges.pair_words) + len(charges.wish_cells)
    # Arcs: one for every factor and every group that has cells, or an anchor, in it.
    links = [(cells.document, np.arange(C), cells.count), (D + cells.word, np.arange(C), cells.count)]
    for p, pair in enumerate(charges.pair_words):
        own = np.flatnonzero(np.isin(cells.word, pair))
        links.append((np.full(len(own), D + V + p), own, cells.count[own]))
    wish, one = F - len(charges.wish_cells) + np.arange(len(charges.wish_cells)), np.ones_like(charges.wish_cells)
    links += [(wish, charges.wish_cells, one), (wish, C + charges.wish_anchors, one)]
    of_factor, item, weight = (np.concatenate(parts) for parts in zip(*links, strict=True))
    keys, inverse = np.unique(of_factor * G + rules.group[item], return_inverse=True)
    count = np.bincount(inverse, weights=weight).astype(np.int64)
    factor, group = keys // G, keys % G
    start = np.searchsorted(factor, np.arange(F + 1)).astype(np.int64)
    total = np.bincount(factor, weights=count, minlength=F).astype(np.int64)
    shift = np.where(np.arange(D + V) < D, prior.a, prior.e)
    tables = [_phi(np.arange(n + 1, dtype=np.float64) + s) for n, s in zip(total[: D + V], shift, strict=True)]
    tables += [np.zeros(n + 1) for n in total[D + V : F - len(wish)]]
    tables += [np.array([0.0, 0.0, cost]) for cost in charges.wish_costs]
    jump = _jumps(charges, D, V, F)
    for table, height in zip(tables, jump, strict=True):
        table[1:] += height
    normaliser = _phi(np.arange(int(cells.count.sum()) + 1, dtype=np.float64) + V * prior.e)
    foes = np.concatenate([rules.apart, rules.apart[:, ::-1]])
    foes = foes[np.lexsort((foes[:, 1], foes[:, 0]))]
    return PricingArrays(
        start=start,
        group=group,
        arc_tokens=count,
        factor=factor,
        table_start=np.concatenate([[0], np.cumsum(total + 1)]).astype(np.int64),
        table=np.concatenate(tables),
        arc_start=np.concatenate([[0], np.cumsum(np.bincount(group, minlength=G))]).astype(np.int64),
        arcs=np.argsort(group, kind="stable").astype(np.int64),
        tokens=rules.summed(np.append(cells.count, np.zeros(charges.n_anchors)).astype(float)).astype(np.int64),
        normaliser=normaliser,
        foe_start=np.searchsorted(foes[:, 0], np.arange(G + 1)).astype(np.int64),
        foes=np.ascontiguousarray(foes[:, 1]),
        jump=jump,
        n_documents=D,
        n_counted=D + V,
        min_documents=charges.min_documents,
        missing_cost=charges.min_documents_weight,
        mass=V * prior.e,
        magnitude=float(
            sum(np.abs(t).max() for t in tables)
            + float(np.abs(jump).sum())
            + (total[: D + V] + shift).sum()
            + np.abs(normaliser).max()
            + (cells.count.sum() + V * prior.e)
            + (charges.missing_documents(0) if charges.soft_documents else 0.0)
        ),
    )


def _jumps(charges: Charges, D: int, V: int, F: int) -> FloatArray:
    jump = np.zeros(F)
    jump[:D] = -charges.document_cost
    for p, ((u, w), weight) in enumerate(zip(charges.pair_words, charges.pair_weights, strict=True)):
        if charges.pair_together[p]:
            jump[D + V + p] = -weight
        else:
            jump[D + u] -= weight
            jump[D + w] -= weight
            jump[D + V + p] = weight
    return jump


def _phi(x: FloatArray) -> FloatArray:
    return np.asarray(xlogy(x, x), dtype=np.float64)
