"""Safe bounds from multipliers: whatever the LP solver returned, the number computed here is a valid upper bound.

For weights w >= 0 on cuts (summing to one per block) and row multipliers q, on the box [l, u]:
    UB = offset + sum w h + sum q rhs + sum_j max(r_j l_j, r_j u_j),   r = cost + sum w u_cut - sum q A.
The sides of rows are the wider ones, so that the bound covers every point that counts as feasible.
Every term is a sum of products in float64; the margin is gamma_n times the sum of magnitudes (see _numeric.rounding).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap._numeric.rounding import gamma
from certimap.engines.cut_pool import CutPool
from certimap.graph.graph import FactorGraph
from certimap.oracles.protocol import Box

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Multipliers:
    """Weights on pool cuts and multipliers on graph rows; sparse, with the right signs."""

    cuts: Ints
    weights: Floats
    rows: Ints
    row_weights: Floats


NO_MULTIPLIERS = Multipliers(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))


def clean(graph: FactorGraph, cuts: Ints, weights: Floats, rows: Ints, row_weights: Floats) -> Multipliers:
    """Drop zeros and signs that no bound can come from."""
    keep = weights > 1e-12
    has_side = np.where(row_weights > 0, np.isfinite(graph.rows.upper[rows]), np.isfinite(graph.rows.lower[rows]))
    keep_row = has_side & (np.abs(row_weights) > 1e-12)
    return Multipliers(cuts[keep], weights[keep], rows[keep_row], row_weights[keep_row])


def normalise(pool: CutPool, n_blocks: int, m: Multipliers) -> Multipliers | None:
    """Rescale so that the weights of every block's optimality cuts sum to one; None if a block has no weight."""
    optimality = ~pool.feasibility[m.cuts]
    blocks = pool.block[m.cuts]
    total = np.bincount(blocks[optimality], m.weights[optimality], minlength=n_blocks)
    if n_blocks and total.min() < 0.5:
        return None
    scaled = np.where(optimality, m.weights / np.where(total > 0, total, 1.0)[blocks], m.weights)
    return Multipliers(m.cuts, scaled, m.rows, m.row_weights)


def combination_bound(graph: FactorGraph, pool: CutPool, m: Multipliers, box: Box, *, objective: bool) -> float:
    """The bound of a combination on the box; without the objective a negative value proves the box empty."""
    owner, flat = pool.entries(m.cuts)
    columns = pool.column[flat]
    part = m.weights[owner] * pool.u[flat]
    rows = graph.rows
    rhs = np.where(m.row_weights > 0, rows.widest_upper[m.rows], rows.widest_lower[m.rows])
    matrix = rows.matrix[m.rows]
    row_part = np.repeat(m.row_weights, np.diff(matrix.indptr)) * matrix.data
    n = graph.n_columns
    cost = graph.cost if objective else np.zeros(n)
    reduced = cost + _scatter(columns, part, n) - _scatter(matrix.indices, row_part, n)
    size = np.abs(cost) + _scatter(columns, np.abs(part), n) + _scatter(matrix.indices, np.abs(row_part), n)
    constants = np.concatenate([m.weights * pool.h[m.cuts], m.row_weights * rhs])
    box_part = np.maximum(reduced * box.lower, reduced * box.upper)
    reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
    terms = len(part) + len(row_part) + len(constants) + n + 4
    scale = float(np.abs(constants).sum() + (size * reach).sum()) + abs(graph.offset)
    value = float(constants.sum() + box_part.sum()) + (graph.offset if objective else 0.0)
    return value + 4.0 * gamma(terms) * scale


def row_slack(graph: FactorGraph, m: Multipliers | None) -> float:
    """The part of a combination's bound that comes from the tolerance of rows."""
    return 0.0 if m is None else float(np.abs(m.row_weights) @ graph.rows.slack[m.rows])


def _scatter(index: NDArray[np.integer], weight: Floats, n: int) -> Floats:
    return np.asarray(np.bincount(index, weight, minlength=n), dtype=np.float64)


def leaf_bound(graph: FactorGraph, pool: CutPool, m: Multipliers, box: Box) -> float:
    """A valid upper bound of the objective on the box, inf if the multipliers give none."""
    scaled = normalise(pool, len(graph.blocks), m)
    return math.inf if scaled is None else combination_bound(graph, pool, scaled, box, objective=True)


def box_bound(graph: FactorGraph, block_bounds: Sequence[Floats], box: Box) -> float:
    """A valid upper bound of the objective on the box, from bounds of the blocks there; -inf if one has no point."""
    blocks = np.concatenate([np.zeros(0), *block_bounds])
    if (blocks == -np.inf).any():
        return -math.inf
    costs = combination_bound(graph, CutPool(), NO_MULTIPLIERS, box, objective=True)
    total = costs + math.fsum(blocks.tolist())
    return math.nextafter(total + 2.0 * gamma(2) * (abs(costs) + abs(total)), math.inf)


def proves_empty(graph: FactorGraph, pool: CutPool, m: Multipliers, box: Box) -> bool:
    """Whether rows and feasibility cuts alone show that the box has no point."""
    keep = pool.feasibility[m.cuts]
    ray = Multipliers(m.cuts[keep], m.weights[keep], m.rows, m.row_weights)
    return combination_bound(graph, pool, ray, box, objective=False) < 0.0
