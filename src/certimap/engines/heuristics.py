"""Feasible points for the incumbent: rounding, local search, fix-and-solve, polishing. None of this enters a proof."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from certimap.engines.cut_master import CutMaster
from certimap.engines.ledger import Ledger
from certimap.engines.local_search import discrete_search
from certimap.oracles.protocol import Box

Floats = NDArray[np.float64]

FIRST_KICKS = 20  # before the root relaxation: easy models close without the long search
LEAST_KICKS, KICKS_PER_VARIABLE, MOST_KICKS = 400, 20, 40_000  # after it
SEARCH_STARTS = 8  # independent starts; their number must not depend on the number of workers
FIX_ROUNDS = 25
LONGEST_PAUSE = 32  # nodes between attempts to fix and solve
POLISH_COLUMNS = 200


class Heuristics:
    """Proposes points to the ledger; every accepted value is the model's closed form."""

    def __init__(self, master: CutMaster, ledger: Ledger, seed: int, n_jobs: int) -> None:
        self._master = master
        self._graph = master.graph
        self._ledger = ledger
        self._seed = seed
        self._n_jobs = n_jobs
        self._search = discrete_search(master.graph)
        self._continuous = np.flatnonzero(~master.graph.integer)
        self._tried: set[bytes] = set()
        self._next_attempt, self._pause = 0, 1

    def offer(self, y: Floats) -> bool:
        """Decode, check and value a point; True if it is the new incumbent."""
        if np.isfinite(self._ledger.log_map) and not self._may_improve(y):
            return False
        assignment: dict[str, Any] = self._graph.decode(y)
        return self._ledger.offer(assignment, self._graph.model.value(assignment))

    def _may_improve(self, y: Floats) -> bool:
        """A fast look at the value in the oracles' arithmetic, before the closed form."""
        whole = y[self._graph.integer]
        if np.abs(whole - np.round(whole)).max(initial=0.0) > 0.0:
            return True
        value = _value(self._master, y)
        return value > self._ledger.log_map - 1e-6 * max(1.0, abs(self._ledger.log_map))

    def at_root(self, y: Floats | None) -> bool:
        """Before the first relaxation, from whatever point is at hand: short searches that close easy models."""
        return self._search_from(np.zeros(self._graph.n_columns) if y is None else y, FIRST_KICKS)

    def after_root(self, y: Floats) -> bool:
        """After the root relaxation: long searches from its point, then all that other nodes get."""
        size = 0 if self._search is None else self._search.n_variables
        searched = self._search_from(y, min(max(LEAST_KICKS, KICKS_PER_VARIABLE * size), MOST_KICKS))
        return self.at_node(y) or searched

    def _search_from(self, y: Floats, kicks: int) -> bool:
        """Independent local searches in parallel threads, the first from `y`, the others from random points."""
        if self._search is None:
            return False
        rng = np.random.default_rng(self._seed)
        points = [y, *(rng.random(self._graph.n_columns) for _ in range(SEARCH_STARTS - 1))]
        found = Parallel(n_jobs=self._n_jobs, prefer="threads")(
            delayed(self._search.improve)(p, kicks, np.random.default_rng([self._seed, k]))
            for k, p in enumerate(points)
        )
        improved = False
        for point in found:
            improved |= point is not None and self.offer(point)
        return improved

    def at_node(self, y: Floats) -> bool:
        """Round the LP point; repair and improve what rounding gives."""
        rounded = self._graph.rounded(y)
        key = rounded[self._graph.integer].tobytes()
        if key in self._tried and len(self._continuous) == 0:
            return False
        improved = self.offer(rounded)
        if key in self._tried:
            return improved
        self._tried.add(key)
        if self._search is not None:
            point = self._search.improve(rounded, 0, np.random.default_rng(self._seed))
            return (point is not None and self.offer(point)) or improved
        return self._sometimes_fix_and_solve(rounded) or improved

    def _sometimes_fix_and_solve(self, rounded: Floats) -> bool:
        """Every failure doubles the number of nodes until the next attempt, a success starts over."""
        if len(self._continuous) == 0 or self._ledger.nodes < self._next_attempt:
            return False
        improved = self._fix_and_solve(rounded)
        self._pause = 1 if improved else min(2 * self._pause, LONGEST_PAUSE)
        self._next_attempt = self._ledger.nodes + self._pause
        return improved

    def _fix_and_solve(self, rounded: Floats) -> bool:
        """Fix the integer columns, run a short cut loop for the continuous ones, polish, and offer."""
        master, whole = self._master, self._graph.integer
        home = master.box
        box = Box(np.where(whole, rounded, home.lower), np.where(whole, rounded, home.upper))
        if (box.lower > home.upper).any() or (box.upper < home.lower).any():
            return self._polish(rounded)
        master.move_to(box)
        point, improved = None, False
        for _ in range(FIX_ROUNDS):
            relaxation = master.solve()
            if relaxation.y is None or relaxation.t is None:
                break
            point = relaxation.y
            if relaxation.bound <= self._ledger.cutoff or not master.separate(point, relaxation.t, 1e-7):
                break
        master.move_to(home)
        if point is not None:
            improved = self.offer(point)
            improved |= self._polish(point)
        return improved

    def _polish(self, y: Floats) -> bool:
        """Local maximisation over the continuous columns with the integer ones fixed."""
        free = self._continuous
        if not 0 < len(free) <= POLISH_COLUMNS:
            return False
        objective = _negative_value(self._master, y, free)
        bounds = list(zip(self._graph.lower[free], self._graph.upper[free], strict=True))
        rows = self._graph.rows
        dense = rows.matrix.toarray()[:, free]
        touching = np.flatnonzero(np.abs(dense).sum(axis=1) > 0)
        if len(touching):
            fixed = rows.matrix[touching] @ np.where(self._graph.integer, y, 0.0)
            low, high = rows.lower[touching] - fixed, rows.upper[touching] - fixed
            equal = low == high
            sorts = [part for part in (equal, ~equal) if part.any()]  # scipy warns where one constraint mixes them
            linear = [LinearConstraint(dense[touching[part]], low[part], high[part]) for part in sorts]
            found = minimize(objective, y[free], method="SLSQP", bounds=bounds, constraints=linear)
        else:
            found = minimize(objective, y[free], method="L-BFGS-B", bounds=bounds)
        polished = y.copy()
        polished[free] = np.clip(found.x, self._graph.lower[free], self._graph.upper[free])
        return self.offer(polished)


def _negative_value(master: CutMaster, y: Floats, free: NDArray[np.int64]) -> Callable[[Floats], float]:
    """Minus the objective as a function of the free columns; a large finite number outside the domain."""

    def objective(x: Floats) -> float:
        point = y.copy()
        point[free] = x
        total = _value(master, point)
        return -total if np.isfinite(total) else 1e12

    return objective


def _value(master: CutMaster, y: Floats) -> float:
    """The objective as the oracles evaluate it."""
    graph = master.graph
    return graph.offset + float(graph.cost @ y) + sum(float(o.value(y).sum()) for o in master.oracles)
