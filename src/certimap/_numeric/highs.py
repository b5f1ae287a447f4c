"""Linear programs: a typed, warm-started view of HiGHS, and the only module that imports it.

    maximise  cost.x   over  lower <= x <= upper,  row_lower <= A x <= row_upper

Sign convention of multipliers, for duals and Farkas proofs alike: q_i > 0 prices the upper side of row i, q_i < 0 the
lower side. With rhs_i(q) = row_upper_i where q_i > 0 and row_lower_i where q_i < 0, any q gives the bound

    cost.x  <=  sum_i q_i rhs_i(q)  +  sum_j max over [lower_j, upper_j] of (cost - q A)_j x_j,

the optimal duals attain it, and a Farkas proof makes it negative with the cost left out: then no x exists.
HiGHS works to tolerances, so all numbers returned here are proposals: whoever claims a bound evaluates this formula.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus, HighsStatus
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]


class LpStatus(Enum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "stopped at a limit"
    FAILED = "no reliable answer"


_STATUS = {
    HighsModelStatus.kOptimal: LpStatus.OPTIMAL,
    HighsModelStatus.kModelEmpty: LpStatus.OPTIMAL,
    HighsModelStatus.kInfeasible: LpStatus.INFEASIBLE,
    HighsModelStatus.kUnbounded: LpStatus.UNBOUNDED,
    HighsModelStatus.kIterationLimit: LpStatus.LIMIT,
    HighsModelStatus.kTimeLimit: LpStatus.LIMIT,
    HighsModelStatus.kInterrupt: LpStatus.LIMIT,
}
_OPTIONS: dict[str, str | int | float] = {
    "solver": "simplex",
    "presolve": "off",  # it would discard the basis
    "parallel": "off",
    "threads": 1,  # reproducible runs, and the cores stay with the caller
    # Cuts are separated to about 1e-8: at the default 1e-7 a cut already in the program could look violated again.
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
_NO_LIMIT = 2**31 - 1
_LARGEST = 1e15  # HiGHS refuses coefficients from here on
_LARGEST_SIDE = 1e19  # and takes sides of 1e20 for infinite


class Basis:
    """A stored basis, to be given back to the program it came from while that has the same rows and columns."""

    def __init__(self, stored: highspy.HighsBasis) -> None:
        self._stored = stored


class LinearProgram:
    """A maximisation LP that is changed and solved again and again; each solve starts from the last basis.

    Every change takes whole arrays. Results (`value`, `row_duals`, ...) describe the last `solve`.
    """

    def __init__(self) -> None:
        # Any: the type stubs of highspy leave out changeRowsBounds, getDualRay and getBasicVariables.
        self._highs: Any = highspy.Highs()
        self._highs.silent()
        for option, value in _OPTIONS.items():
            _check(self._highs.setOptionValue(option, value), f"set {option}")
        _check(self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize), "maximise")
        self._solution: highspy.HighsSolution | None = None

    # --------------------------------------------------------------------------------------------------------- shape
    @property
    def n_columns(self) -> int:
        return int(self._highs.getNumCol())

    @property
    def n_rows(self) -> int:
        return int(self._highs.getNumRow())

    def add_columns(
        self, cost: ArrayLike, lower: ArrayLike, upper: ArrayLike, matrix: sparse.csc_array | None = None
    ) -> None:
        """Append columns; `matrix` holds their entries in the existing rows (none if omitted)."""
        c, low, high = _floats(cost, lower, upper)
        starts, indices, values = _compressed(matrix)
        self._change("add columns", self._highs.addCols, len(c), c, low, high, len(indices), starts, indices, values)

    def add_rows(self, lower: ArrayLike, upper: ArrayLike, matrix: sparse.csr_array) -> None:
        """Append rows  lower <= matrix x <= upper; `matrix` has one column per column of the program.

        A row with a coefficient too large for HiGHS is added empty: that relaxes the program, and keeps the numbering.
        """
        low, high = _sides(lower, upper)
        matrix, low, high = _without_huge_rows(matrix, low, high)
        starts, indices, values = _compressed(matrix)
        self._change("add rows", self._highs.addRows, len(low), low, high, len(indices), starts, indices, values)

    def delete_rows(self, rows: ArrayLike) -> None:
        """Remove rows; later ones move up. The basis survives where the removed rows were basic (slack)."""
        at = _indices(rows)
        self._change("delete rows", self._highs.deleteRows, len(at), at)

    # -------------------------------------------------------------------------------------------------------- changes
    def set_costs(self, columns: ArrayLike, cost: ArrayLike) -> None:
        """Change costs of the listed columns."""
        at, (c,) = _indices(columns), _floats(cost)
        self._change("set costs", self._highs.changeColsCost, len(at), at, c)

    def set_column_bounds(self, columns: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change bounds of the listed columns."""
        at, (low, high) = _indices(columns), _floats(lower, upper)
        self._change("set column bounds", self._highs.changeColsBounds, len(at), at, low, high)

    def set_row_bounds(self, rows: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> None:
        """Change sides of the listed rows."""
        at, (low, high) = _indices(rows), _sides(lower, upper)
        self._change("set row bounds", self._highs.changeRowsBounds, len(at), at, low, high)

    # ---------------------------------------------------------------------------------------------------------- solve
    def solve(self, iteration_limit: int | None = None, time_limit: float | None = None) -> LpStatus:
        """Simplex from the last basis; an unreliable outcome is tried once more from scratch."""
        # HiGHS counts iterations per run, but time since the program was created.
        _check(
            self._highs.setOptionValue("simplex_iteration_limit", iteration_limit or _NO_LIMIT),
            "set an iteration limit",
        )
        stop = float("inf") if time_limit is None else self._highs.getRunTime() + time_limit
        _check(self._highs.setOptionValue("time_limit", stop), "set a time limit")
        status = self._run()
        if status in (LpStatus.UNBOUNDED, LpStatus.FAILED):
            _check(self._highs.clearSolver(), "start from scratch")
            status = self._run()
        return status

    @property
    def value(self) -> float:
        """cost.x of the last solve."""
        return float(self._highs.getObjectiveValue())

    @property
    def iterations(self) -> int:
        """Simplex iterations of the last solve."""
        return int(self._highs.getInfo().simplex_iteration_count)

    @property
    def column_values(self) -> Floats:
        """The primal point x."""
        return np.array(self._last().col_value, dtype=float)

    @property
    def row_duals(self) -> Floats:
        """Multipliers q of the rows, see the module's docstring; after LIMIT merely a proposal."""
        return np.array(self._last().row_dual, dtype=float)

    def farkas(self) -> Floats | None:
        """Multipliers q that prove infeasibility, see the module's docstring.

        None where HiGHS has none: a crossed pair of bounds, which proves itself.
        """
        status, exists, ray = self._highs.getDualRay()
        return -np.asarray(ray, dtype=float) if status != HighsStatus.kError and exists else None

    def basic(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which columns and which rows are basic; a basic row is slack and can be deleted at no cost."""
        columns, rows = np.zeros(self.n_columns, dtype=bool), np.zeros(self.n_rows, dtype=bool)
        status, members = self._highs.getBasicVariables()
        if status != HighsStatus.kError:
            columns[members[members >= 0]] = True
            rows[-1 - members[members < 0]] = True
        return columns, rows

    def basis(self) -> Basis:
        """The current basis, for `restore`."""
        return Basis(self._highs.getBasis())

    def restore(self, basis: Basis) -> None:
        """Start the next solve from a stored basis."""
        self._change("restore a basis", self._highs.setBasis, basis._stored)

    # ------------------------------------------------------------------------------------------------------- internal
    def _run(self) -> LpStatus:
        self._solution = None
        outcome = self._highs.run()
        if outcome == HighsStatus.kError:
            return LpStatus.FAILED
        return _STATUS.get(self._highs.getModelStatus(), LpStatus.FAILED)

    def _last(self) -> highspy.HighsSolution:
        if self._solution is None:
            self._solution = self._highs.getSolution()
        return self._solution

    def _change(self, what: str, method: Callable[..., HighsStatus], *arguments: Any) -> None:
        self._solution = None
        _check(method(*arguments), what)


def _check(status: HighsStatus, what: str) -> None:
    """Warnings (crossed bounds, tiny coefficients dropped) are no errors: the solve shows what they mean."""
    if status == HighsStatus.kError:
        raise ValueError(f"HiGHS refused to {what}: wrong sizes, indices or non-finite coefficients")


def _floats(*arrays: ArrayLike) -> list[Floats]:
    converted = [np.ascontiguousarray(a, dtype=np.float64) for a in arrays]
    if len({len(a) for a in converted}) > 1:
        raise ValueError(f"arrays of different lengths: {[len(a) for a in converted]}")
    return converted


def _sides(lower: ArrayLike, upper: ArrayLike) -> list[Floats]:
    """Sides of rows; those that HiGHS would take for the wrong infinity are relaxed to large numbers."""
    low, high = _floats(lower, upper)
    return [np.minimum(low, _LARGEST_SIDE), np.maximum(high, -_LARGEST_SIDE)]


def _without_huge_rows(matrix: sparse.csr_array, low: Floats, high: Floats) -> tuple[sparse.csr_array, Floats, Floats]:
    """The same rows, those with a coefficient that HiGHS refuses without coefficients and sides."""
    entries = np.flatnonzero(~(np.abs(matrix.data) < _LARGEST))
    if not len(entries):
        return matrix, low, high
    huge = np.zeros(len(low), dtype=bool)
    huge[np.searchsorted(matrix.indptr, entries, side="right") - 1] = True
    kept = sparse.csr_array(matrix, copy=True)
    kept.data[np.repeat(huge, np.diff(kept.indptr))] = 0.0
    kept.eliminate_zeros()
    return kept, np.where(huge, -np.inf, low), np.where(huge, np.inf, high)


def _indices(given: ArrayLike) -> Indices:
    return np.ascontiguousarray(given, dtype=np.int32)


def _compressed(matrix: sparse.csr_array | sparse.csc_array | None) -> tuple[Indices, Indices, Floats]:
    if matrix is None:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.zeros(0)
    return (
        np.ascontiguousarray(matrix.indptr[:-1], dtype=np.int32),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=np.float64),
    )
