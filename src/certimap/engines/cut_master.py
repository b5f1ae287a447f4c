"""The relaxed master problem of Benders' decomposition: one LP, one column t_b per block, cuts added on demand.

maximise  cost.y + sum_b t_b   over  rows, box,  t_b <= u.y + h (optimality cuts),  0 <= u.y + h (feasibility cuts)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from certimap._numeric.highs import Basis, LinearProgram, LpStatus
from certimap.engines.bounds import NO_MULTIPLIERS, Multipliers, box_bound, clean, leaf_bound, proves_empty
from certimap.engines.cut_pool import CutPool
from certimap.graph.graph import FactorGraph
from certimap.oracles.protocol import Box, Cuts, Oracle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_OFF, MOST_OFF_SHARE = 200, 0.3  # rows of local cuts that may wait for the boxes where they hold
PURGE_EVERY = 2000  # cuts in the LP beyond which slack ones are removed (they stay in the pool)


@dataclass(frozen=True)
class Relaxation:
    """Outcome of one master solve on a box: a valid bound with its multipliers, and the LP point (None if empty)."""

    bound: float
    multipliers: Multipliers | None
    y: Floats | None
    t: Floats | None

    @property
    def empty(self) -> bool:
        return self.bound == -math.inf


class CutMaster:
    """Owns the LP and the pool; moves from box to box by changing bounds, so that the basis stays warm."""

    def __init__(self, graph: FactorGraph, oracles: list[Oracle]) -> None:
        self.graph = graph
        self.oracles = oracles
        self.pool = CutPool()
        self.box = Box(np.array(graph.lower), np.array(graph.upper))
        self.solves = 0
        self._n, self._blocks = graph.n_columns, len(graph.blocks)
        self._in_lp = np.zeros(0, dtype=np.int64)  # pool position of every cut row of the LP, in row order
        self._active = np.zeros(0, dtype=bool)  # whether that row is switched on for the current box
        self._lp = LinearProgram()
        free = np.full(self._blocks, np.inf)
        self._lp.add_columns(
            np.concatenate([graph.cost, np.ones(self._blocks)]),
            np.concatenate([graph.lower, -free]),
            np.concatenate([graph.upper, free]),
        )
        rows = graph.rows
        padding = sparse.csr_array((len(rows), self._blocks))
        self._lp.add_rows(rows.lower, rows.upper, sparse.hstack([rows.matrix, padding], format="csr"))
        for oracle in oracles:
            self.add(oracle, oracle.proposals(self.box))
        self._permanent = len(self._in_lp)  # they keep every t_b bounded

    def add(self, oracle: Oracle, cuts: Cuts) -> int:
        """Put cuts, valid on the current box, into pool and LP."""
        if not len(cuts):
            return 0
        positions = self.pool.add(oracle.batch, cuts.with_exclusions(), self.box)
        self._insert(positions)
        return len(cuts)

    def _insert(self, positions: Ints) -> None:
        owner, flat = self.pool.entries(positions)
        optimality = np.flatnonzero(~self.pool.feasibility[positions])
        row = np.concatenate([owner, optimality])
        column = np.concatenate([self.pool.column[flat], self._n + self.pool.block[positions[optimality]]])
        value = np.concatenate([-self.pool.u[flat], np.ones(len(optimality))])
        matrix = sparse.coo_array((value, (row, column)), shape=(len(positions), self._n + self._blocks)).tocsr()
        self._lp.add_rows(np.full(len(positions), -np.inf), self.pool.h[positions], matrix)
        self._in_lp = np.concatenate([self._in_lp, positions])
        self._active = np.concatenate([self._active, np.ones(len(positions), dtype=bool)])

    def move_to(self, box: Box) -> None:
        """Make `box` the current box; local cuts are switched on where they hold and off elsewhere."""
        changed = np.flatnonzero((box.lower != self.box.lower) | (box.upper != self.box.upper))
        if len(changed):
            self._lp.set_column_bounds(changed, box.lower[changed], box.upper[changed])
        self.box = box
        holds = self.pool.valid_on(self._in_lp, box)
        switched = np.flatnonzero(holds != self._active)
        if len(switched):
            side = np.where(holds[switched], self.pool.h[self._in_lp[switched]], np.inf)
            self._lp.set_row_bounds(len(self.graph.rows) + switched, np.full(len(switched), -np.inf), side)
            self._active = holds

    def solve(self, time_limit: float | None = None) -> Relaxation:
        """Solve the LP on the current box; the bound is recomputed safely from the multipliers, never the LP's own.

        A program that the time limit stops gives a bound as well, but no point.
        """
        self.solves += 1
        status = self._lp.solve(time_limit=time_limit)
        if status is LpStatus.INFEASIBLE:
            ray = self._lp.farkas()
            multipliers = None if ray is None else self._multipliers(ray)
            if multipliers is not None and proves_empty(self.graph, self.pool, multipliers, self.box):
                return Relaxation(-math.inf, multipliers, None, None)
            return Relaxation(math.inf, None, None, None)
        if status not in (LpStatus.OPTIMAL, LpStatus.LIMIT):
            return Relaxation(math.inf, None, None, None)
        multipliers = self._multipliers(self._lp.row_duals)
        bound = leaf_bound(self.graph, self.pool, multipliers, self.box)
        if status is LpStatus.LIMIT:
            return Relaxation(bound, multipliers, None, None)
        point = self._lp.column_values
        y = np.clip(point[: self._n], self.box.lower, self.box.upper)
        return Relaxation(bound, multipliers, y, point[self._n :])

    def without_cuts(self) -> Relaxation:
        """The bound of the current box by the blocks' own bounds there: crude, beyond numerical trouble."""
        bound = math.inf
        if all(oracle.box_bounds for oracle in self.oracles):
            bound = box_bound(self.graph, [oracle.upper(self.box) for oracle in self.oracles], self.box)
        return Relaxation(bound, NO_MULTIPLIERS, None, None)

    def probe(self, column: int, lower: float, upper: float, iterations: int) -> float:
        """The LP value with one column restricted, by a few simplex steps: a score for branching, not a bound."""
        self._lp.set_column_bounds([column], [lower], [upper])
        status = self._lp.solve(iteration_limit=iterations)
        value = -math.inf if status is LpStatus.INFEASIBLE else self._lp.value + self.graph.offset
        self._lp.set_column_bounds([column], [self.box.lower[column]], [self.box.upper[column]])
        return value

    def separate(self, y: Floats, t: Floats, tolerance: float) -> int:
        """Ask every oracle for cuts violated at (y, t); returns how many were added."""
        return sum(
            self.add(oracle, oracle.separate(y, t[oracle.batch.blocks], self.box, tolerance)) for oracle in self.oracles
        )

    def basis(self) -> Basis:
        return self._lp.basis()

    def restore(self, basis: Basis) -> None:
        self._lp.restore(basis)

    def purge(self) -> None:
        """Drop cut rows when many are switched off, slack ones when the LP has grown long; the pool keeps them all."""
        off = np.flatnonzero(~self._active)
        if len(off) > max(MOST_OFF, MOST_OFF_SHARE * len(self._in_lp)):
            self._drop(off)
        if len(self._in_lp) < PURGE_EVERY:
            return
        _, basic_rows = self._lp.basic()
        slack = basic_rows[len(self.graph.rows) :]
        drop = self._permanent + np.flatnonzero(slack[self._permanent :])
        if 2 * len(drop) > len(self._in_lp):
            self._drop(drop)

    def _drop(self, cut_rows: Ints) -> None:
        self._lp.delete_rows(len(self.graph.rows) + cut_rows)
        self._in_lp = np.delete(self._in_lp, cut_rows)
        self._active = np.delete(self._active, cut_rows)

    def _multipliers(self, duals: Floats) -> Multipliers:
        n_rows = len(self.graph.rows)
        return clean(self.graph, self._in_lp, duals[n_rows:], np.arange(n_rows), duals[:n_rows])
