"""Bound tightening by rows: an activity argument, each step recorded so that a verifier can repeat it.

For a row  L <= a.y <= U  and the smallest activity of the other columns, a_j y_j <= U - min activity. Integer columns
are rounded inwards after a slack that covers float64 rounding; continuous columns are tightened only where it is worth
it and keep a slack, so that exact arithmetic confirms every step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certimap.certificate import Tightening
from certimap.graph.graph import FactorGraph
from certimap.oracles.protocol import Box

SLACK = 1e-9  # far above the rounding of most activities, far below 1, the distance of integers
ROUNDING = 2.0**-51  # times terms and their total size: twice the rounding of an activity and of its updates
WORTH = 1e-3  # relative width that a continuous tightening must gain
MAX_SWEEPS = 20


class Propagator:
    """Tightens boxes of one graph."""

    def __init__(self, graph: FactorGraph) -> None:
        matrix = graph.rows.matrix
        self._rows = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data)
        self._sides = (graph.rows.widest_lower, graph.rows.widest_upper)
        self._integer = graph.integer
        self._root_width = graph.upper - graph.lower
        by_column = matrix.tocsc()
        self._rows_of = (by_column.indptr.astype(np.int64), by_column.indices.astype(np.int64))

    def tighten(self, box: Box, changed: int | None = None) -> tuple[Box, tuple[Tightening, ...], bool]:
        """The tightened box, the steps, and whether points may remain; `changed`: start from this column's rows."""
        lower, upper = box.lower.copy(), box.upper.copy()
        n_rows = len(self._sides[0])
        start = np.ones(n_rows, dtype=np.bool_)
        if changed is not None:
            start[:] = False
            start[self._rows_of[1][self._rows_of[0][changed] : self._rows_of[0][changed + 1]]] = True
        steps, alive = _sweep(
            *self._rows, *self._sides, *self._rows_of, self._integer, self._root_width, lower, upper, start
        )
        recorded = tuple(Tightening(int(j), low, high, int(r)) for j, low, high, r in steps.tolist())
        return Box(lower, upper), recorded, bool(alive)


@njit(cache=True, nogil=True)
def _sweep(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float64],
    row_lower: NDArray[np.float64],
    row_upper: NDArray[np.float64],
    column_start: NDArray[np.int64],
    column_rows: NDArray[np.int64],
    integer: NDArray[np.bool_],
    root_width: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    queued: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], bool]:
    steps = np.empty((64, 4))
    count = 0
    for _ in range(MAX_SWEEPS):
        again = False
        for r in range(len(row_lower)):
            if not queued[r]:
                continue
            queued[r] = False
            low, high, size = 0.0, 0.0, 0.0
            for p in range(indptr[r], indptr[r + 1]):
                j, a = indices[p], data[p]
                size += abs(a) * max(abs(lower[j]), abs(upper[j]))
                low += a * lower[j] if a > 0 else a * upper[j]
                high += a * upper[j] if a > 0 else a * lower[j]
            error = ROUNDING * (indptr[r + 1] - indptr[r] + 4) * size  # of the sums, which large terms may leave small
            for p in range(indptr[r], indptr[r + 1]):
                j, a = indices[p], data[p]
                if lower[j] == upper[j] or abs(a) < 1e-9:
                    continue
                least = low - (a * lower[j] if a > 0 else a * upper[j])
                most = high - (a * upper[j] if a > 0 else a * lower[j])
                above = (row_upper[r] - least) / a if a > 0 else (row_lower[r] - most) / a
                below = (row_lower[r] - most) / a if a > 0 else (row_upper[r] - least) / a
                slack = (SLACK * max(1.0, abs(least), abs(most)) + error) / min(1.0, abs(a))
                if integer[j]:
                    new_low = max(lower[j], math.ceil(below - slack)) if below > -1e15 else lower[j]
                    new_high = min(upper[j], math.floor(above + slack)) if above < 1e15 else upper[j]
                else:
                    new_low = max(lower[j], below - slack) if below > -1e15 else lower[j]
                    new_high = min(upper[j], above + slack) if above < 1e15 else upper[j]
                    if (upper[j] - lower[j]) - (new_high - new_low) < WORTH * root_width[j]:
                        continue
                if new_low <= lower[j] and new_high >= upper[j]:
                    continue
                if count == len(steps):
                    grown = np.empty((2 * count, 4))
                    grown[:count] = steps
                    steps = grown
                steps[count, 0], steps[count, 1], steps[count, 2], steps[count, 3] = j, new_low, new_high, r
                count += 1
                low += a * (new_low - lower[j]) if a > 0 else a * (new_high - upper[j])
                high += a * (new_high - upper[j]) if a > 0 else a * (new_low - lower[j])
                lower[j], upper[j] = new_low, new_high
                if new_low > new_high:
                    return steps[:count], False
                for q in range(column_start[j], column_start[j + 1]):
                    if column_rows[q] != r:
                        queued[column_rows[q]] = True
                        again = True
        if not again:
            break
    return steps[:count], True
