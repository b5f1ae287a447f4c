"""Envelopes of tables over any number of variables: also the oracle of merged blocks such as 2x2 windows.

A term is a list of states with finite values. At a fractional point one linear program per term gives the envelope,

    max { sum_e p_e theta_e : p >= 0, marginals of p equal y },

warm-started from the last point: only its right-hand side changes. Its duals are the multipliers; where it is
infeasible, its Farkas multipliers q have q(e) >= 0 for all states e and q.y < 0: a feasibility cut.
At a whole point s no program is needed. With D(e) the variables in which state e differs from s,

    u_d(k) = max over e with e_d = k of (theta_e - theta_s) / |D(e)|,   u_d(s_d) = 0

gives sum over D(e) of u_d(e_d) >= theta_e - theta_s for every state e, hence a cut that is tight at s.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from certimap._numeric.highs import LinearProgram, LpStatus
from certimap._numeric.rounding import raised
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.cuts import Box, Cuts, Floats
from certimap.oracles.discrete import WHOLE, FiniteOracle, allowed_states, centred

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
        best, state = _best_state(self.theta[i], self.states(i), u)
        x = np.zeros(len(u))
        x[self.states(i)[state]] = 1.0
        return self._with_margin(best, u, i), x

    def conjugates(self, u: Floats) -> Floats:
        return np.array([self._constant(i, u[i]) for i in range(len(u))])

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """One cut for every term whose t exceeds the envelope; the product distribution sorts out most others."""
        x = self.marginals(y)
        value = self._product_values(x)
        whole = (x.max(axis=1) == 1.0) & ((x == 0.0) | (x == 1.0)).all(axis=1)
        parts = []
        for i in np.flatnonzero(t > value + tolerance).tolist():
            cut = self._cut_at_state(i, x[i], float(value[i])) if whole[i] else self._cut_at_mixture(i, x[i])
            if cut is not None and _violation(cut, y[self.scope[i]], float(t[i])) > tolerance:
                parts.append(cut)
        return Cuts.join(parts, self.scope.shape[1])

    # ------------------------------------------------------------------------------------------------------- internal
    def _product_values(self, x: Floats) -> Floats:
        mean, mass = np.empty(len(x)), np.empty(len(x))
        _fill_product_values(self.theta, self.listed, x, mean, mass)
        return np.where(mass < 1.0 - 1e-9, -np.inf, mean)

    def _constant(self, i: int, u: Floats) -> float:
        return self._with_margin(_best_state(self.theta[i], self.states(i), u)[0], u, i)

    def _with_margin(self, h: float, u: Floats, i: int) -> float:
        """As many subtractions as variables, of numbers no larger than this scale."""
        arity = len(self.sizes)
        scale = self._magnitude[i] + np.maximum.reduceat(np.abs(u), self.starts[:-1]).sum()
        return float(raised(np.array(h), scale, arity))

    def _cut_at_state(self, i: int, x: Floats, value: float) -> Cuts | None:
        if value == -np.inf:
            u = -x
            agreement = _best_state(np.where(self.theta[i] > -np.inf, 0.0, -np.inf), self.states(i), u)[0]
            return Cuts.of(np.array([i]), u[None], np.array([agreement]), feasibility=True)
        u = _supporting_slopes(self.theta[i], self.states(i), x, value)
        return Cuts.of(np.array([i]), u[None], np.array([self._constant(i, u)]))

    def _cut_at_mixture(self, i: int, x: Floats) -> Cuts | None:
        program = self._program(i)
        program.set_row_bounds(np.arange(len(x)), x, x)
        status = program.solve()
        if status is LpStatus.OPTIMAL:
            u = centred(program.row_duals[None], self.starts)[0]
            return Cuts.of(np.array([i]), u[None], np.array([self._constant(i, u)]))
        farkas = program.farkas() if status is LpStatus.INFEASIBLE else None
        if farkas is None:
            return None
        u = centred(farkas[None] / np.abs(farkas).max(), self.starts)[0]
        domain = np.where(self.theta[i] > -np.inf, 0.0, -np.inf)
        h = self._with_margin(_best_state(domain, self.states(i), u)[0], u, i)
        return Cuts.of(np.array([i]), u[None], np.array([h]), feasibility=True)

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


def _violation(cut: Cuts, y: Floats, t: float) -> float:
    right = float(cut.u[0] @ y + cut.h[0])
    return -right if cut.feasibility[0] else t - right


@njit(cache=True, nogil=True)
def _best_state(theta: Floats, states: Positions, u: Floats) -> tuple[float, int]:
    """max over states e of theta_e - sum_d u_d(e_d), and where."""
    best, at = -np.inf, 0
    for e in range(len(theta)):
        z = theta[e]
        if z > -np.inf:
            for d in range(states.shape[1]):
                z -= u[states[e, d]]
            if z > best:
                best, at = z, e
    return best, at


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


@njit(cache=True, nogil=True)
def _supporting_slopes(theta: Floats, states: Positions, x: Floats, value: float) -> Floats:
    """Multipliers of a cut that is tight at the whole point x, see the module's docstring."""
    u = np.full(len(x), -np.inf)
    for e in range(len(theta)):
        differing = 0
        for d in range(states.shape[1]):
            if x[states[e, d]] == 0.0:
                differing += 1
        if theta[e] > -np.inf and differing > 0:
            share = (theta[e] - value) / differing
            for d in range(states.shape[1]):
                u[states[e, d]] = max(u[states[e, d]], share)
    least = 0.0
    for k in range(len(u)):
        if x[k] == 0.0 and u[k] > -np.inf:
            least = min(least, u[k])
    for k in range(len(u)):
        if x[k] > 0.0:
            u[k] = 0.0
        elif u[k] == -np.inf:
            u[k] = least  # occurs in no state: any value is valid
    return u
