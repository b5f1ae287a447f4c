"""Envelopes of pairwise tables: many small transportation problems, solved by successive shortest paths.

    max { sum p_ij theta_ij : p >= 0, row sums a, column sums b }  =  min { u.a + v.b : u_i + v_j >= theta_ij }

Duals (u, v) start feasible and stay so. Each augmentation is a Dijkstra search from a row with supply over the reduced
costs u_i + v_j - theta_ij; entries -inf have no arc. A row whose supply reaches no demand proves infeasibility: with R
the reached rows and C their finite columns, every state has [i in R] <= [j in C], but a(R) > b(C) (Hall's condition).

Optimal duals are seldom unique. A second pass routes uniform marginals on top, free to reroute the first flow without
limit: it keeps the optimality at (a, b) and makes the cut as deep as possible at the centre of the polytope
(Magnanti and Wong's rule, with the centre as core point).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NO_CUT, OPTIMALITY, FEASIBILITY = 0, 1, 2
_DUST = 1e-12  # supply below this is rounding
_STUCK = 1e-6  # supply that must be left over before infeasibility is claimed: more than the master's row tolerance


class Search(NamedTuple):
    """Workspace of one Dijkstra search: distances, parents and membership of rows and columns, rows in order found."""

    row_distance: Floats
    distance: Floats
    row_parent: NDArray[np.int64]
    parent: NDArray[np.int64]
    in_tree: NDArray[np.bool_]
    scanned: NDArray[np.bool_]
    order: NDArray[np.int64]


@njit(cache=True, nogil=True)
def separate_pairs(
    theta: Floats, marginals: Floats, t: Floats, tolerance: float, u: Floats, kinds: NDArray[np.int8]
) -> None:
    """Fill kinds (m,) and u (m, K + L) for theta (m, K, L) at marginals (m, K + L): multipliers where t is too high."""
    m, n_rows, n_columns = theta.shape
    supply, demand = np.empty(n_rows), np.empty(n_columns)
    flow = np.empty((n_rows, n_columns))
    search = _new_search(n_rows, n_columns)
    for e in range(m):
        a, b = marginals[e, :n_rows], marginals[e, n_rows:]
        kinds[e] = NO_CUT
        if t[e] <= _product_value(theta[e], a, b) + tolerance:
            continue
        rows, columns = u[e, :n_rows], u[e, n_rows:]
        _feasible_start(theta[e], rows, columns)
        for i in range(n_rows):
            supply[i] = a[i]
            for j in range(n_columns):
                flow[i, j] = 0.0
        for j in range(n_columns):
            demand[j] = b[j]
        if not _route(theta[e], supply, demand, rows, columns, flow, search, _STUCK):
            for i in range(n_rows):
                rows[i] = -1.0 if search.in_tree[i] else 0.0
            for j in range(n_columns):
                columns[j] = 1.0 if search.scanned[j] else 0.0
            kinds[e] = FEASIBILITY
            continue
        for i in range(n_rows):
            supply[i] = 1.0 / n_rows
            for j in range(n_columns):
                if flow[i, j] > 0.0:
                    flow[i, j] = np.inf
        for j in range(n_columns):
            demand[j] = 1.0 / n_columns
        _route(theta[e], supply, demand, rows, columns, flow, search, np.inf)
        _tighten(theta[e], rows, columns)
        kinds[e] = OPTIMALITY


@njit(cache=True, nogil=True)
def conjugate_pairs(theta: Floats, u: Floats, h: Floats) -> None:
    """Fill h (m,) with max_ij theta_ij - u_i - v_j as computed, without margin."""
    m, n_rows, n_columns = theta.shape
    for e in range(m):
        best = -np.inf
        for i in range(n_rows):
            for j in range(n_columns):
                best = max(best, theta[e, i, j] - u[e, i] - u[e, n_rows + j])
        h[e] = best


@njit(cache=True, nogil=True)
def _new_search(n_rows: int, n_columns: int) -> Search:
    return Search(
        np.empty(n_rows),
        np.empty(n_columns),
        np.empty(n_rows, np.int64),
        np.empty(n_columns, np.int64),
        np.empty(n_rows, np.bool_),
        np.empty(n_columns, np.bool_),
        np.empty(n_rows, np.int64),
    )


@njit(cache=True, nogil=True)
def _product_value(theta: Floats, a: Floats, b: Floats) -> float:
    """sum a_i b_j theta_ij, a value the envelope reaches; exact where a and b are whole."""
    total = 0.0
    for i in range(len(a)):
        if a[i] > 0.0:
            for j in range(len(b)):
                if b[j] > 0.0:
                    total += a[i] * b[j] * theta[i, j]
    return total


@njit(cache=True, nogil=True)
def _feasible_start(theta: Floats, u: Floats, v: Floats) -> None:
    for j in range(len(v)):
        v[j] = 0.0
    for i in range(len(u)):
        best = -np.inf
        for j in range(len(v)):
            best = max(best, theta[i, j])
        u[i] = best if best > -np.inf else 0.0


@njit(cache=True, nogil=True)
def _route(
    theta: Floats, supply: Floats, demand: Floats, u: Floats, v: Floats, flow: Floats, search: Search, stuck: float
) -> bool:
    """Send all supply, keeping the duals optimal for what was sent; False once a row keeps more than `stuck`."""
    limit = 4 * (len(supply) + len(demand)) + 8  # rounding could make augmentations arbitrarily small
    for i in range(len(supply)):
        for _ in range(limit):
            if supply[i] <= _DUST:
                break
            if not _augment(theta, i, supply, demand, u, v, flow, search):
                if supply[i] > stuck:
                    return False
                break
    return True


@njit(cache=True, nogil=True)
def _augment(
    theta: Floats, source: int, supply: Floats, demand: Floats, u: Floats, v: Floats, flow: Floats, search: Search
) -> bool:
    """One Dijkstra search from a row, dual update and augmentation; False when no demand is reachable."""
    row_distance, distance, row_parent, parent, in_tree, scanned, order = search
    n_rows, n_columns = theta.shape
    for j in range(n_columns):
        distance[j], scanned[j] = np.inf, False
    for i in range(n_rows):
        in_tree[i] = False
    in_tree[source], row_distance[source], row_parent[source] = True, 0.0, -1
    order[0] = source
    count, done = 1, 0
    while True:
        while done < count:
            i = order[done]
            done += 1
            for j in range(n_columns):
                if not scanned[j] and theta[i, j] > -np.inf:
                    reached = row_distance[i] + max(0.0, u[i] + v[j] - theta[i, j])
                    if reached < distance[j]:
                        distance[j], parent[j] = reached, i
        sink, nearest = -1, np.inf
        for j in range(n_columns):
            if not scanned[j] and distance[j] < nearest:
                sink, nearest = j, distance[j]
        if sink < 0:
            return False
        if demand[sink] > 0.0:
            break
        scanned[sink] = True
        for i in range(n_rows):
            if not in_tree[i] and flow[i, sink] > 0.0:
                in_tree[i], row_distance[i], row_parent[i] = True, nearest, sink
                order[count] = i
                count += 1
    for i in range(n_rows):
        if in_tree[i]:
            u[i] -= nearest - row_distance[i]
    for j in range(n_columns):
        if scanned[j]:
            v[j] += nearest - distance[j]
    amount, j = min(supply[source], demand[sink]), sink
    while row_parent[parent[j]] >= 0:
        i = parent[j]
        j = row_parent[i]
        amount = min(amount, flow[i, j])
    j = sink
    while True:
        i = parent[j]
        flow[i, j] += amount
        if row_parent[i] < 0:
            break
        j = row_parent[i]
        flow[i, j] -= amount
    supply[source] -= amount
    demand[sink] -= amount
    return True


@njit(cache=True, nogil=True)
def _tighten(theta: Floats, u: Floats, v: Floats) -> None:
    """Lower v, then u, as far as u_i + v_j >= theta_ij allows; states without any finite entry keep the least value."""
    for j in range(len(v)):
        best = -np.inf
        for i in range(len(u)):
            best = max(best, theta[i, j] - u[i])
        if best > -np.inf:
            v[j] = best
    for i in range(len(u)):
        best = -np.inf
        for j in range(len(v)):
            best = max(best, theta[i, j] - v[j])
        if best > -np.inf:
            u[i] = best
