"""Iterated local search over discrete points: single-variable moves with incremental values, kicks, linear penalties.

It proposes points only. Constraint rows enter as a penalty on their violation, excluded states (-inf) as a large loss;
a point is feasible when both vanish, and its value is recomputed in closed form by whoever uses it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.graph.blocks import dense_values
from certimap.graph.graph import FactorGraph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EXCLUDED = -1e6  # stands for -inf inside the search
MOST_WORK = 100_000_000  # entries looked at by one search: less than a second


class Terms(NamedTuple):
    """Variable i has states with one-hot columns column[first[i]:first[i+1]]; tables are flat, last axis fastest."""

    first: Ints
    unary: Floats
    table_start: Ints
    table: Floats
    scope_start: Ints
    scope: Ints
    stride: Ints
    touch_start: Ints
    touch: Ints  # positions in `scope` that mention variable i: touch[touch_start[i]:touch_start[i+1]]
    term_of: Ints  # the table that a position in `scope` belongs to
    row_start: Ints  # rows of a state: row[row_start[c]:row_start[c+1]] with c = first[i] + state
    row: Ints
    coefficient: Floats
    row_lower: Floats
    row_upper: Floats
    penalty: float


class State(NamedTuple):
    """A point with what moves need: flat table positions, row activities, which variables may have a better state."""

    x: Ints
    base: Ints
    activity: Floats
    dirty: NDArray[np.bool_]
    work: Ints  # number of table and row entries that moves have looked at


class DiscreteSearch:
    """Local search on a purely discrete graph; see `discrete_search` for when there is one."""

    def __init__(self, terms: Terms, column: Ints, n_columns: int) -> None:
        self._terms = terms
        self._column = column
        self._n_columns = n_columns

    @property
    def n_variables(self) -> int:
        return len(self._terms.first) - 1

    def point(self, x: Ints) -> Floats:
        """The one-hot columns of the states `x`."""
        y = np.zeros(self._n_columns)
        y[self._column[self._terms.first[:-1] + x]] = 1.0
        return y

    def states(self, y: Floats) -> Ints:
        """The states nearest to a (fractional) point."""
        ends = pairwise(self._terms.first.tolist())
        return np.array([np.argmax(y[self._column[a:b]]) for a, b in ends], dtype=np.int64)

    def improve(self, start: Floats, kicks: int, rng: np.random.Generator) -> Floats | None:
        """The best feasible point found from `start` (columns), None if none was met."""
        x = self.states(start)
        return self.point(x) if _iterate(x, kicks, rng, self._terms) else None


def discrete_search(graph: FactorGraph) -> DiscreteSearch | None:
    """The search for this graph, or None when it has parts that the search does not handle."""
    handled = all(b.kind in ("table", "potts") for b in graph.batches)
    if not graph.groups or (graph.group_of < 0).any() or not handled:
        return None
    first = np.cumsum([0, *(len(g) for g in graph.groups)])
    column = np.concatenate(graph.groups)
    tables, scopes = _tables(graph)
    scope = np.array([v for s in scopes for v in s], dtype=np.int64)
    sizes = np.array([len(s) for s in scopes], dtype=np.int64)
    strides = [np.cumprod([1, *(len(graph.groups[v]) for v in s[:0:-1])])[::-1] for s in scopes]
    touch = np.argsort(scope, kind="stable")
    named = np.flatnonzero(graph.rows.owner >= 0)
    by_column = graph.rows.matrix[named].tocsc()[:, column]
    spread = max([1.0, *(float(np.ptp(t[t > EXCLUDED])) for t in tables if (t > EXCLUDED).any())])
    terms = Terms(
        first=first,
        unary=np.where(_allowed(graph)[column], graph.cost[column], EXCLUDED),
        table_start=np.cumsum([0, *(t.size for t in tables)]),
        table=np.concatenate([np.zeros(0), *(t.ravel() for t in tables)]),
        scope_start=np.concatenate([[0], np.cumsum(sizes)]),
        scope=scope,
        stride=np.concatenate([np.zeros(0, dtype=np.int64), *strides]),
        touch_start=np.searchsorted(scope[touch], np.arange(len(graph.groups) + 1)),
        touch=touch,
        term_of=np.repeat(np.arange(len(sizes)), sizes),
        row_start=by_column.indptr.astype(np.int64),
        row=by_column.indices.astype(np.int64),
        coefficient=by_column.data,
        row_lower=np.array(graph.rows.lower[named]),
        row_upper=np.array(graph.rows.upper[named]),
        penalty=2.0 * spread + float(np.ptp(graph.cost)),
    )
    return DiscreteSearch(terms, column, graph.n_columns)


def _allowed(graph: FactorGraph) -> NDArray[np.bool_]:
    """The columns that may be 1: not excluded, and no other column of their group is fixed to 1."""
    allowed = np.asarray(graph.upper > 0.0)
    for group in graph.groups:
        if (graph.lower[group] > 0.0).any():
            allowed[group] &= graph.lower[group] > 0.0
    return allowed


def _tables(graph: FactorGraph) -> tuple[list[Floats], list[list[int]]]:
    tables, scopes = [], []
    for batch in graph.batches:
        for factor, columns in zip(batch.factors, batch.scope, strict=True):
            tables.append(np.maximum(dense_values(factor), EXCLUDED))
            scopes.append(list(dict.fromkeys(graph.group_of[columns].tolist())))
    return tables, scopes


@njit(cache=True, nogil=True)
def _violation(activity: float, low: float, high: float) -> float:
    if activity < low:
        return low - activity
    return activity - high if activity > high else 0.0


@njit(cache=True, nogil=True)
def _start(x: Ints, terms: Terms) -> State:
    base = np.zeros(len(terms.table_start) - 1, np.int64)
    for p in range(len(terms.scope)):
        base[terms.term_of[p]] += x[terms.scope[p]] * terms.stride[p]
    activity = np.zeros(len(terms.row_lower))
    for i in range(len(x)):
        c = terms.first[i] + x[i]
        for q in range(terms.row_start[c], terms.row_start[c + 1]):
            activity[terms.row[q]] += terms.coefficient[q]
    return State(x, base, activity, np.ones(len(x), np.bool_), np.zeros(1, np.int64))


@njit(cache=True, nogil=True)
def _shift(c: int, sign: float, state: State, terms: Terms) -> float:
    """Add (or take away) the row entries of a state; returns the change of the total violation."""
    change = 0.0
    for q in range(terms.row_start[c], terms.row_start[c + 1]):
        r = terms.row[q]
        change -= _violation(state.activity[r], terms.row_lower[r], terms.row_upper[r])
        state.activity[r] += sign * terms.coefficient[q]
        change += _violation(state.activity[r], terms.row_lower[r], terms.row_upper[r])
    return change


@njit(cache=True, nogil=True)
def _gain(i: int, b: int, state: State, terms: Terms) -> float:
    """Change of the penalised value when variable i takes state b."""
    a = state.x[i]
    old, new = terms.first[i] + a, terms.first[i] + b
    state.work[0] += 1 + terms.touch_start[i + 1] - terms.touch_start[i]
    state.work[0] += terms.row_start[old + 1] - terms.row_start[old] + terms.row_start[new + 1] - terms.row_start[new]
    gain = float(terms.unary[new] - terms.unary[old])
    for q in range(terms.touch_start[i], terms.touch_start[i + 1]):
        p = terms.touch[q]
        f = terms.term_of[p]
        e = terms.table_start[f] + state.base[f]
        gain += terms.table[e + (b - a) * terms.stride[p]] - terms.table[e]
    violation: float = _shift(old, -1.0, state, terms) + _shift(new, 1.0, state, terms)
    _shift(new, -1.0, state, terms)
    _shift(old, 1.0, state, terms)
    return gain - terms.penalty * violation


@njit(cache=True, nogil=True)
def _apply(i: int, b: int, state: State, terms: Terms) -> None:
    a = state.x[i]
    for q in range(terms.touch_start[i], terms.touch_start[i + 1]):
        p = terms.touch[q]
        f = terms.term_of[p]
        state.base[f] += (b - a) * terms.stride[p]
        for neighbour in range(terms.scope_start[f], terms.scope_start[f + 1]):
            state.dirty[terms.scope[neighbour]] = True
    old, new = terms.first[i] + a, terms.first[i] + b
    _shift(old, -1.0, state, terms)
    _shift(new, 1.0, state, terms)
    if terms.row_start[old] < terms.row_start[old + 1] or terms.row_start[new] < terms.row_start[new + 1]:
        state.dirty[:] = True  # rows reach far
    state.x[i] = b


@njit(cache=True, nogil=True)
def _descend(state: State, terms: Terms) -> float:
    """Best single-variable moves until none improves; returns the total gain."""
    total = 0.0
    improved = True
    while improved:
        improved = False
        for i in range(len(state.x)):
            if not state.dirty[i]:
                continue
            state.dirty[i] = False
            gain, choice = 1e-10, -1
            for b in range(terms.first[i + 1] - terms.first[i]):
                if b != state.x[i]:
                    g = _gain(i, b, state, terms)
                    if g > gain:
                        gain, choice = g, b
            if choice >= 0:
                _apply(i, choice, state, terms)
                total += gain
                improved = True
    return total


@njit(cache=True, nogil=True)
def _feasible(state: State, terms: Terms) -> bool:
    for r in range(len(terms.row_lower)):
        if _violation(state.activity[r], terms.row_lower[r], terms.row_upper[r]) > 1e-9:
            return False
    for f in range(len(state.base)):
        if terms.table[terms.table_start[f] + state.base[f]] <= EXCLUDED:
            return False
    chosen = terms.unary[terms.first[:-1] + state.x]
    return bool((chosen > EXCLUDED).all())


@njit(cache=True, nogil=True)
def _kick(state: State, terms: Terms, rng: np.random.Generator) -> float:
    """A few random moves, on variables anywhere or along a random walk; returns the change of the penalised value."""
    n = len(state.x)
    total = 0.0
    walk = rng.random() < 0.5
    i = int(rng.integers(0, n))
    for _ in range(1 + rng.integers(0, max(1, min(n // 8, 12)))):
        touched = terms.touch_start[i + 1] - terms.touch_start[i]
        if walk and touched > 0:
            f = terms.term_of[terms.touch[terms.touch_start[i] + rng.integers(0, touched)]]
            i = int(
                terms.scope[terms.scope_start[f] + rng.integers(0, terms.scope_start[f + 1] - terms.scope_start[f])]
            )
        else:
            i = int(rng.integers(0, n))
        b = int(rng.integers(0, terms.first[i + 1] - terms.first[i]))
        if b != state.x[i]:
            total += _gain(i, b, state, terms)
            _apply(i, b, state, terms)
    return total


@njit(cache=True, nogil=True)
def _iterate(x: Ints, kicks: int, rng: np.random.Generator, terms: Terms) -> bool:
    """Kick and descend, going back when worse; leaves the best feasible states in x if there were any."""
    state = _start(x, terms)
    value, accepted, best = 0.0, -np.inf, -np.inf
    found, incumbent, current = False, x.copy(), x.copy()
    for kick in range(kicks + 1):
        if state.work[0] > MOST_WORK:
            break
        if kick > 0:
            value += _kick(state, terms, rng)
        value += _descend(state, terms)
        if (not found or value > best) and _feasible(state, terms):
            found, best = True, value
            incumbent[:] = state.x
        if value >= accepted - 1e-9:
            accepted = value
            current[:] = state.x
        else:
            for i in range(len(x)):
                if state.x[i] != current[i]:
                    _apply(i, current[i], state, terms)
            value = accepted
    if found:
        x[:] = incumbent
    return found
