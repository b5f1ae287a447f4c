"""Envelopes of tables over any number of variables: also the oracle of merged blocks such as 2x2 windows.

A term is a list of states with finite values. At a fractional point one linear program per term gives the envelope,

    max { sum_e p_e theta_e : p >= 0, marginals of p equal y }.

Its duals are the multipliers of the cut; where it is infeasible, Farkas multipliers q with q(e) >= 0 for all states e
and q.y < 0 make a feasibility cut. All terms are solved together, see `multimarginal`; the few that it gives up, and
those too large for it, go to a general solver one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from certimap._numeric.highs import LinearProgram, LpStatus
from certimap._numeric.rounding import raised
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats, Ints
from certimap.oracles.discrete import WHOLE, FiniteOracle, allowed_states, centred
from certimap.oracles.multimarginal import GAVE_UP, Multimarginal
from certimap.oracles.transport import FEASIBILITY, NO_CUT, OPTIMALITY

Positions = NDArray[np.int32]


class JointTables(FiniteOracle):
    """Dense tables of one shape, or sparse ones with equally many states."""

    def __init__(self, batch: FactorBatch, graph: FactorGraph) -> None:
        super().__init__(batch, graph)
        offsets = self.starts[:-1].astype(np.int32)
        if "positions" in batch.data:
            positions = batch.data["positions"]
        else:
            positions = np.stack(np.unravel_index(np.arange(np.prod(self.sizes)), self.sizes), axis=-1)[None]
        # (m or 1, states, arity): scope positions of a state's indicators; dense tables share one list.
        self.listed: Positions = positions.astype(np.int32) + offsets
        self.theta: Floats = batch.data["log_values"].reshape(len(batch), -1)
        self._magnitude = np.abs(np.where(np.isfinite(self.theta), self.theta, 0.0)).max(axis=1)
        self._multimarginal = Multimarginal(self.theta, self.listed, self.starts)
        self._programs: dict[int, LinearProgram] = {}

    def states(self, i: int) -> Positions:
        """(states, arity) scope positions of the states of term i, in the order of `theta[i]`."""
        listed: Positions = self.listed[i if len(self.listed) > 1 else 0]
        return listed

    def value(self, y: Floats) -> Floats:
        """Mean under the product distribution: the entry where y is whole, -inf where it touches an excluded one."""
        return self._product_values(self.marginals(y, WHOLE))

    def upper(self, box: Box) -> Floats:
        """The largest entry that the box allows."""
        best = np.empty(len(self.theta))
        _largest_allowed(self.theta, self.listed, allowed_states(box, self.scope, self.starts), best)
        return best

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        """Over the whole domain; see `FiniteOracle`."""
        _, state = _best_state(self.theta[i], self.states(i), u, False)
        x = np.zeros(len(u))
        x[self.states(i)[state]] = 1.0
        return float(self._constants(np.array([i]), u[None], np.zeros(1, dtype=bool))[0]), x

    def conjugates(self, u: Floats) -> Floats:
        return self._constants(np.arange(len(u)), u, np.zeros(len(u), dtype=bool))

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """One cut for every term whose t exceeds the envelope; the product distribution sorts out some others."""
        x = self.marginals(y)
        term = np.flatnonzero(t > self._product_values(x) + tolerance)
        u, kinds = self._multimarginal.separate(term, x[term], t[term], tolerance)
        for k in np.flatnonzero(kinds == GAVE_UP).tolist():
            u[k], kinds[k] = self._by_program(int(term[k]), x[term[k]])
        found = np.flatnonzero(kinds != NO_CUT)
        term, feasibility = term[found], kinds[found] == FEASIBILITY
        u = centred(u[found], self.starts)
        h = self._constants(term, u, feasibility)
        right = np.einsum("ew,ew->e", u, y[self.scope[term]]) + h
        kept = np.flatnonzero(np.where(feasibility, 0.0, t[term]) - right > tolerance)
        return Cuts(term[kept], u[kept], h[kept], np.zeros(len(kept), dtype=bool), feasibility[kept])

    # ------------------------------------------------------------------------------------------------------- internal
    def _product_values(self, x: Floats) -> Floats:
        mean, mass = np.empty(len(x)), np.empty(len(x))
        _fill_product_values(self.theta, self.listed, x, mean, mass)
        return np.where(mass < 1.0 - 1e-9, -np.inf, mean)

    def _constants(self, terms: Ints, u: Floats, feasibility: NDArray[np.bool_]) -> Floats:
        """Certified constants of cuts with multipliers u, one row for every listed term."""
        h = np.empty(len(u))
        _fill_constants(self.theta, self.listed, terms, u, feasibility, h)
        # As many subtractions as variables, of numbers no larger than this scale.
        scale = self._magnitude[terms] + np.maximum.reduceat(np.abs(u), self.starts[:-1], axis=1).sum(axis=1)
        return np.asarray(raised(h, scale, len(self.sizes)))

    def _by_program(self, i: int, x: Floats) -> tuple[Floats, int]:
        """Multipliers and kind of the cut at x by a general solver."""
        program = self._program(i)
        program.set_row_bounds(np.arange(len(x)), x, x)
        status = program.solve()
        if status is LpStatus.OPTIMAL:
            return program.row_duals, OPTIMALITY
        farkas = program.farkas() if status is LpStatus.INFEASIBLE else None
        return (x, NO_CUT) if farkas is None else (farkas / np.abs(farkas).max(), FEASIBILITY)

    def _program(self, i: int) -> LinearProgram:
        if i not in self._programs:
            finite = np.flatnonzero(self.theta[i] > -np.inf)
            states = self.states(i)[finite]
            count, arity = states.shape
            starts = np.arange(0, count * arity + 1, arity)
            matrix = sparse.csc_array((np.ones(count * arity), states.ravel(), starts), shape=(self.starts[-1], count))
            program = self._programs[i] = LinearProgram()
            zeros = np.zeros(self.starts[-1])
            program.add_rows(zeros, zeros, sparse.csr_array((len(zeros), 0)))
            program.add_columns(self.theta[i, finite], np.zeros(count), np.full(count, np.inf), matrix)
        return self._programs[i]


@njit(cache=True, nogil=True)
def _best_state(theta: Floats, states: Positions, u: Floats, feasibility: bool) -> tuple[float, int]:
    """max over states e of theta_e - sum_d u_d(e_d), or of -sum_d u_d(e_d) over finite ones, and where."""
    best, at = -np.inf, 0
    for e in range(len(theta)):
        if theta[e] > -np.inf:
            z = 0.0 if feasibility else theta[e]
            for d in range(states.shape[1]):
                z -= u[states[e, d]]
            if z > best:
                best, at = z, e
    return best, at


@njit(cache=True, nogil=True)
def _fill_constants(
    theta: Floats, states: Positions, terms: Ints, u: Floats, feasibility: NDArray[np.bool_], h: Floats
) -> None:
    for k in range(len(terms)):
        listed = states[terms[k] if len(states) > 1 else 0]
        h[k] = _best_state(theta[terms[k]], listed, u[k], feasibility[k])[0]


@njit(cache=True, nogil=True)
def _fill_product_values(theta: Floats, states: Positions, x: Floats, mean: Floats, mass: Floats) -> None:
    """Mean of finite entries under the product of the marginals, and their total probability."""
    for i in range(theta.shape[0]):
        listed = states[i if len(states) > 1 else 0]
        mean[i] = mass[i] = 0.0
        for e in range(theta.shape[1]):
            if theta[i, e] > -np.inf:
                weight = 1.0
                for d in range(listed.shape[1]):
                    weight *= x[i, listed[e, d]]
                    if weight == 0.0:
                        break
                if weight > 0.0:
                    mean[i] += weight * theta[i, e]
                    mass[i] += weight


@njit(cache=True, nogil=True)
def _largest_allowed(theta: Floats, states: Positions, allowed: NDArray[np.bool_], best: Floats) -> None:
    for i in range(theta.shape[0]):
        listed = states[i if len(states) > 1 else 0]
        best[i] = -np.inf
        for e in range(theta.shape[1]):
            if theta[i, e] > best[i]:
                is_open = True
                for d in range(listed.shape[1]):
                    is_open = is_open and allowed[i, listed[e, d]]
                if is_open:
                    best[i] = theta[i, e]
