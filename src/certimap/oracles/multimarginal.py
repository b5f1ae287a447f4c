"""Envelopes of many tables at once: the multi-marginal transportation problem by a small dense dual simplex.

    max { sum_e p_e theta_e : p >= 0, marginals of p equal x }  =  min { u.x : sum_d u_d(e_d) >= theta_e for all e }

One row for the total mass, row 0, and one for every state of a variable but its first, whose row follows from the
others: m = 1 + sum_d (K_d - 1) rows. The values theta of a term never change, only x does, so the last optimal basis B
stays dual feasible and the dual simplex method goes on from there. The first basis consists of logical columns, fixed
at zero, with the multipliers u_0(k) = max { theta_e : e_0 = k } and u_d = 0 otherwise, which are dual feasible, too.

Every term owns a tableau of m + 1 rows, which each pivot changes by the same row operation:

    [ B^-1  | 0 | B^-1 x | B^-1 c ]        the zero column stands for the rows left out;
    [   u   | 0 |  u.x   |  u.c   ]        c is the centre of the polytope, uniform marginals.

Leaving: the basic value furthest beyond its bound in the steepest-edge norm. Entering: the ratio test over slacks
s_e = u(e) - theta_e. With no column to enter, the row of B^-1 is a Farkas proof, q(e) >= 0 > q.x.
Optimal u are seldom unique. Pivots in rows whose value is zero at x but wrong at c keep u optimal at x and lower u.c:
of all cuts that touch the envelope at x, the one deepest at the centre (Magnanti and Wong's rule).

Rounding errors grow with the number of pivots. So an optimum is accepted only with marginals and value of p equal to x
and u.x; else, and after many pivots, the term starts afresh. What is returned are proposals in any case: the caller
evaluates the constants of its cuts.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.oracles.transport import FEASIBILITY, NO_CUT, OPTIMALITY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Kinds = NDArray[np.int8]

GAVE_UP = 3  # next to the kinds of `transport`
MOST_ENTRIES = 2**25  # of all tableaus of a batch together: 256 MiB
_LOGICAL = -1  # in place of a state in the basis
_ZERO = 1e-9  # basic values and entries of the tableau below this are rounding; so is the master's point
_HARRIS = 1e-12  # slack that the ratio test gives away for a larger pivot, relative to the values
_REFRESH = 1000  # pivots after which a term starts afresh


class Multimarginal:
    """Tableaus of the terms of one batch; terms are independent of each other and started on first use."""

    def __init__(self, theta: Floats, listed: Indices, starts: NDArray[np.int64]) -> None:
        """`theta` (terms, states); `listed` (terms or 1, states, arity) positions among starts[-1] columns."""
        n_terms, width = len(theta), int(starts[-1])
        sizes = np.diff(starts)
        self._theta = theta
        self._kept = np.delete(np.arange(width), starts[:-1])
        m = 1 + len(self._kept)
        row = np.full(width, m, dtype=np.int32)  # column m of the tableau is zero
        row[self._kept] = np.arange(1, m)
        self._rows: Indices = np.ascontiguousarray(row[listed])
        self._sizes = sizes if _is_full(listed, starts) else sizes[:0]
        self._centre = np.append(1.0, np.repeat(1.0 / sizes, sizes)[self._kept])
        self._fits = n_terms * (m + 1) * (m + 3) <= MOST_ENTRIES
        self._tableau = np.empty((n_terms if self._fits else 0, m + 1, m + 3))
        self._basis = np.empty((n_terms, m), dtype=np.int32)
        self._pivots = np.full(n_terms, _REFRESH, dtype=np.int64)

    def separate(self, terms: Ints, x: Floats, t: Floats, tolerance: float) -> tuple[Floats, Kinds]:
        """Multipliers u (one row for each of the listed terms) and kinds, at points x of the products of simplices.

        OPTIMALITY where t exceeds the envelope, FEASIBILITY where no p has the marginals x, both by more than the
        tolerance (of u with largest entry 1 for the latter); GAVE_UP where the method did not finish.
        """
        u = np.zeros(x.shape)
        kinds = np.full(len(terms), GAVE_UP, dtype=np.int8)
        if self._fits:
            right = np.ones((len(x), 1 + len(self._kept)))
            right[:, 1:] = x[:, self._kept]
            found = np.empty_like(right)
            fixed = self._theta, self._rows, self._sizes, self._centre
            _separate(*fixed, terms, right, t, tolerance, self._tableau, self._basis, self._pivots, found, kinds)
            u[:, self._kept] = found[:, 1:]  # a multiplier of the total mass belongs to the constant of the cut
        return u, kinds


def _is_full(listed: Indices, starts: Ints) -> bool:
    """Whether the list is that of all joint states, the last variable running fastest."""
    sizes = np.diff(starts)
    if len(listed) > 1 or listed.shape[1] != np.prod(sizes, dtype=float):
        return False
    every = np.unravel_index(np.arange(listed.shape[1]), sizes)
    return all(np.array_equal(listed[0, :, d] - starts[d], k) for d, k in enumerate(every))


@njit(cache=True, nogil=True)
def _separate(
    theta: Floats,
    rows: Indices,
    sizes: Ints,
    centre: Floats,
    terms: Ints,
    x: Floats,
    t: Floats,
    tolerance: float,
    tableau: Floats,
    basis: Indices,
    pivots: Ints,
    u: Floats,
    kinds: Kinds,
) -> None:
    n_states, m = theta.shape[1], len(centre)
    slack, alpha, column = np.empty(n_states), np.empty(n_states), np.empty(m + 1)
    idle = np.empty(m, np.bool_)
    for k in range(len(terms)):
        i = terms[k]
        states = rows[i if len(rows) > 1 else 0]
        for _ in range(2):
            if pivots[i] >= _REFRESH:
                _start(theta[i], states, centre, tableau[i], basis[i])
                pivots[i] = 0
            _place(tableau[i], x[k])
            count, kind = _optimise(
                theta[i], states, sizes, tableau[i], basis[i], tolerance, slack, alpha, column, idle, u[k]
            )
            pivots[i] += count
            if kind == OPTIMALITY and not _is_solved(theta[i], states, x[k], tableau[i], basis[i], column):
                kind = GAVE_UP
            kinds[k] = kind
            if kind != GAVE_UP:
                break
            pivots[i] = _REFRESH
        if kinds[k] == OPTIMALITY:
            if t[k] <= tableau[i, m, m + 1] + tolerance:
                kinds[k] = NO_CUT
            for r in range(m):
                u[k, r] = tableau[i, m, r]


@njit(cache=True, nogil=True)
def _start(theta: Floats, states: Indices, centre: Floats, tableau: Floats, basis: Indices) -> None:
    """The basis of logical columns."""
    m, top = len(basis), -np.inf
    u = tableau[m]
    for i in range(m + 1):
        for j in range(m + 3):
            tableau[i, j] = 0.0
    for i in range(m):
        basis[i] = _LOGICAL
        tableau[i, i] = 1.0
        tableau[i, m + 2] = centre[i]
        u[i] = -np.inf
    for e in range(len(theta)):
        top = max(top, theta[e])
        u[states[e, 0]] = max(u[states[e, 0]], theta[e])
    if top == -np.inf:  # no state at all: any multipliers will do
        top = 0.0
    u[0], u[m] = top, 0.0
    for i in range(1, m):
        u[i] = u[i] - top if u[i] > -np.inf else 0.0  # 0: of a later variable, or in no state
        u[m + 2] += u[i] * centre[i]
    u[m + 2] += top


@njit(cache=True, nogil=True)
def _place(tableau: Floats, x: Floats) -> None:
    """Move the right-hand side to x."""
    for i in range(len(tableau)):
        total = 0.0
        for r in range(len(x)):
            total += tableau[i, r] * x[r]
        tableau[i, len(x) + 1] = total


@njit(cache=True, nogil=True)
def _optimise(
    theta: Floats,
    states: Indices,
    sizes: Ints,
    tableau: Floats,
    basis: Indices,
    tolerance: float,
    slack: Floats,
    alpha: Floats,
    column: Floats,
    idle: NDArray[np.bool_],
    farkas: Floats,
) -> tuple[int, int]:
    """Number of pivots and outcome; where infeasible, the proof is written to `farkas`."""
    m = len(basis)
    limit = 20 * m + 50
    spare = 0.0
    idle[:] = False
    for count in range(limit):
        r = _leaving(tableau, basis, idle, count < limit // 2)
        if r < 0:
            return count, OPTIMALITY
        if count == 0:
            spare = _HARRIS * _price(theta, states, sizes, tableau[m], slack)
        row = tableau[r]
        at_x = abs(row[m + 1]) > _ZERO
        value = row[m + 1] if at_x else row[m + 2]
        sign = -1.0 if value > 0.0 else 1.0
        _sum_up(states, sizes, row, sign, alpha)
        q = _entering(alpha, slack, spare)
        if q < 0:
            largest = 0.0
            for j in range(m):
                largest = max(largest, abs(row[j]))
            if at_x and abs(value) > tolerance * largest:
                for j in range(m):
                    farkas[j] = sign * row[j] / largest
                return count, FEASIBILITY
            idle[r] = True
            continue
        idle[r] = False
        step, gap = slack[q] / alpha[q], slack[q]
        for e in range(len(slack)):
            slack[e] -= step * alpha[e]
        slack[q] = 0.0
        basis[r] = q
        _pivot(tableau, r, states[q], gap, column)
    return limit, GAVE_UP


@njit(cache=True, nogil=True)
def _sum_up(states: Indices, sizes: Ints, row: Floats, sign: float, out: Floats) -> None:
    """Fill `out` with sign * row(e), the sum over the rows in which the column of state e has its ones.

    Where all states are listed, one variable after the other: about two additions per state.
    """
    if len(sizes) == 0:
        for e in range(len(out)):
            total = row[0]
            for d in range(states.shape[1]):
                total += row[states[e, d]]
            out[e] = sign * total
        return
    out[0] = sign * row[0]
    done, first = 1, len(row) - 3
    for d in range(len(sizes) - 1, -1, -1):
        first -= sizes[d] - 1
        for k in range(1, sizes[d]):
            shift = sign * row[first + k - 1]
            for e in range(done):
                out[k * done + e] = out[e] + shift
        done *= sizes[d]


@njit(cache=True, nogil=True)
def _price(theta: Floats, states: Indices, sizes: Ints, u: Floats, slack: Floats) -> float:
    """Slacks u(e) - theta_e, +inf for excluded states, which therefore never enter; returns the largest finite one."""
    largest = 0.0
    _sum_up(states, sizes, u, 1.0, slack)
    for e in range(len(theta)):
        slack[e] -= theta[e]
        if slack[e] < np.inf:
            largest = max(largest, slack[e])
    return largest


@njit(cache=True, nogil=True)
def _leaving(tableau: Floats, basis: Indices, idle: NDArray[np.bool_], deepen: bool) -> int:
    """The row to leave the basis, -1 at an optimum; values at x come first, then, if `deepen`, those at the centre."""
    m = len(basis)
    r, best, decided = -1, 0.0, False
    for i in range(m):
        value = tableau[i, m + 1]
        at_x = abs(value) > _ZERO
        if not at_x:
            value = tableau[i, m + 2] if deepen and not decided else 0.0
        # A basic state must not be negative, a logical has to be zero.
        if idle[i] or abs(value) <= _ZERO or (value > 0.0 and basis[i] != _LOGICAL):
            continue
        norm = 0.0
        for j in range(m):
            norm += tableau[i, j] * tableau[i, j]
        if (at_x and not decided) or value * value > best * norm:
            r, best = i, value * value / norm
        decided = decided or at_x
    return r


@njit(cache=True, nogil=True)
def _entering(alpha: Floats, slack: Floats, spare: float) -> int:
    """Harris' ratio test: of the states with nearly the least ratio, the one with the largest pivot; -1 if none."""
    least = np.inf
    for e in range(len(slack)):
        if alpha[e] < -_ZERO:
            least = min(least, (max(slack[e], 0.0) + spare) / -alpha[e])
    q, pivot = -1, -_ZERO
    if least < np.inf:
        for e in range(len(slack)):
            if alpha[e] < pivot and slack[e] <= -least * alpha[e]:
                q, pivot = e, alpha[e]
    return q


@njit(cache=True, nogil=True)
def _pivot(tableau: Floats, r: int, state: Indices, slack: float, column: Floats) -> None:
    """Bring a state with this slack into row r of the basis; `column` receives its entries in the other rows."""
    m = len(tableau) - 1
    for i in range(m):
        column[i] = tableau[i, 0]
        for d in range(len(state)):
            column[i] += tableau[i, state[d]]
    column[m] = slack
    row = tableau[r]
    scale = 1.0 / column[r]
    for j in range(m + 3):
        row[j] *= scale
    for i in range(m + 1):
        factor = column[i]
        if i != r and factor != 0.0:
            for j in range(m + 3):
                tableau[i, j] -= factor * row[j]


@njit(cache=True, nogil=True)
def _is_solved(theta: Floats, states: Indices, x: Floats, tableau: Floats, basis: Indices, column: Floats) -> bool:
    """Whether the basic p has marginals x and its states have no slack, up to rounding."""
    m = len(basis)
    column[:] = 0.0
    loss = scale = 0.0
    for i in range(m):
        p, e = tableau[i, m + 1], basis[i]
        if e == _LOGICAL:
            column[i] += p
            continue
        column[0] += p
        total = tableau[m, 0] - theta[e]
        for d in range(states.shape[1]):
            column[states[e, d]] += p
            total += tableau[m, states[e, d]]
        loss += abs(p * total)
        scale = max(scale, abs(theta[e]))
    for r in range(m):
        if abs(column[r] - x[r]) > 10.0 * _ZERO:
            return False
    return loss <= _ZERO * (1.0 + scale)
