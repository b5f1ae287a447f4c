"""The pricing problem max over S of c(S) - lambda(S) as flat arrays, in terms of groups of tied cells.

Every document and every word is a *factor*: a function h_f of the number n_f of its tokens in the topic, phi(n_f + a)
or phi(n_f + e). Group g adds `arc_tokens` tokens to each factor it has an *arc* to, so that with n tokens in the topic

    c(S) = sum_f h_f(n_f) - phi(n + V e).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from certimap.oracles.partition import ColumnRules
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
        n_documents: the factors before this one are documents.
        min_documents: of a topic.
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
    n_documents: int
    min_documents: int
    mass: float
    magnitude: float


def pricing_arrays(cells: Cells, prior: TopicPrior, rules: ColumnRules, min_documents: int) -> PricingArrays:
    """The arrays of the topics over these cells that respect the rules."""
    D, V, G = cells.n_documents, cells.n_words, rules.n_groups
    # Arcs: one for every group and document, and for every group and word, that have cells in common.
    keys, inverse = np.unique(
        np.concatenate([cells.document * G + rules.group, (D + cells.word) * G + rules.group]), return_inverse=True
    )
    count = np.bincount(inverse, weights=np.tile(cells.count, 2)).astype(np.int64)
    factor, group = keys // G, keys % G
    start = np.searchsorted(factor, np.arange(D + V + 1)).astype(np.int64)
    total = np.bincount(factor, weights=count, minlength=D + V).astype(np.int64)
    shift = np.where(np.arange(D + V) < D, prior.a, prior.e)
    tables = [_phi(np.arange(n + 1, dtype=np.float64) + s) for n, s in zip(total, shift, strict=True)]
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
        tokens=rules.summed(cells.count.astype(float)).astype(np.int64),
        normaliser=normaliser,
        foe_start=np.searchsorted(foes[:, 0], np.arange(G + 1)).astype(np.int64),
        foes=np.ascontiguousarray(foes[:, 1]),
        n_documents=D,
        min_documents=min_documents,
        mass=V * prior.e,
        magnitude=float(
            sum(np.abs(t).max() for t in tables)
            + (total + shift).sum()
            + np.abs(normaliser).max()
            + (cells.count.sum() + V * prior.e)
        ),
    )


def _phi(x: FloatArray) -> FloatArray:
    return np.asarray(xlogy(x, x), dtype=np.float64)
