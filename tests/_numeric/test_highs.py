"""The LP wrapper: every multiplier it returns must satisfy the bound formula of its docstring."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from certimap._numeric.highs import LinearProgram, LpStatus


def dual_bound(q, cost, lower, upper, matrix, row_lower, row_upper):
    """sum q rhs(q) + max over the box of (cost - qA) x, infinite sides counting only where they are used."""
    rhs = np.where(q > 0, row_upper, row_lower)
    reduced = cost - q @ matrix
    sides = np.where(reduced > 0, upper, lower)
    return np.sum(q[q != 0] * rhs[q != 0]) + np.sum(reduced[reduced != 0] * sides[reduced != 0])


def random_program(rng, rows, columns):
    matrix = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.6)
    cost, lower = rng.normal(size=columns), -rng.random(columns)
    upper = lower + 2 * rng.random(columns)
    inside = rng.uniform(lower, upper)
    middle = matrix @ inside
    row_lower = np.where(rng.random(rows) < 0.5, -np.inf, middle - rng.random(rows))
    row_upper = np.where(rng.random(rows) < 0.3, np.inf, middle + rng.random(rows))
    return cost, lower, upper, matrix, row_lower, row_upper


def build(cost, lower, upper, matrix, row_lower, row_upper):
    lp = LinearProgram()
    lp.add_columns(cost, lower, upper)
    lp.add_rows(row_lower, row_upper, sparse.csr_array(matrix))
    return lp


def reference(cost, lower, upper, matrix, row_lower, row_upper):
    high, low = np.isfinite(row_upper), np.isfinite(row_lower)
    left = np.vstack([matrix[high], -matrix[low]])
    right = np.concatenate([row_upper[high], -row_lower[low]])
    return -linprog(-cost, A_ub=left, b_ub=right, bounds=np.column_stack([lower, upper])).fun


@pytest.mark.parametrize("seed", range(10))
def test_optimum_and_duals(seed):
    data = random_program(np.random.default_rng(seed), 6, 9)
    cost = data[0]
    lp = build(*data)
    assert lp.solve() is LpStatus.OPTIMAL
    assert lp.value == pytest.approx(reference(*data), abs=1e-7)
    assert cost @ lp.column_values == pytest.approx(lp.value, abs=1e-9)
    assert dual_bound(lp.row_duals, *data) == pytest.approx(lp.value, abs=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_farkas_multipliers_prove_infeasibility(seed):
    rng = np.random.default_rng(seed)
    cost, lower, upper, matrix, row_lower, row_upper = random_program(rng, 5, 4)
    # A combination of the rows, asked to exceed its own maximum over the others.
    direction = rng.normal(size=4)
    best = reference(direction, lower, upper, matrix, row_lower, row_upper)
    matrix = np.vstack([matrix, direction])
    row_lower, row_upper = np.append(row_lower, best + 0.1), np.append(row_upper, np.inf)
    lp = build(cost, lower, upper, matrix, row_lower, row_upper)
    assert lp.solve() is LpStatus.INFEASIBLE
    q = lp.farkas()
    assert q is not None
    assert dual_bound(q, np.zeros(4), lower, upper, matrix, row_lower, row_upper) < 0


def test_changes_are_followed_warm():
    lp = LinearProgram()
    lp.add_columns([1.0, 1.0], [0.0, 0.0], [10.0, 10.0])
    lp.add_rows([-np.inf, -np.inf], [4.0, 3.0], sparse.csr_array(np.array([[1.0, 2.0], [1.0, 0.0]])))
    assert lp.solve() is LpStatus.OPTIMAL
    assert lp.column_values.tolist() == [3.0, 0.5]
    assert lp.row_duals.tolist() == [0.5, 0.5]
    lp.set_column_bounds([1], [0.0], [0.25])
    lp.solve()
    assert lp.value == 3.25
    lp.set_row_bounds([1], [-np.inf], [5.0])
    lp.solve()
    assert lp.value == 4.0
    lp.set_costs([0, 1], [0.0, -1.0])
    lp.solve()
    assert lp.value == 0.0
    lp.add_columns([2.0], [0.0], [1.0], sparse.csc_array(np.array([[1.0], [0.0]])))
    lp.solve()
    assert lp.value == 2.0
    lp.delete_rows([0])
    assert (lp.n_columns, lp.n_rows) == (3, 1)
    lp.solve()
    assert lp.value == 2.0
    assert lp.iterations == 0


def test_basic_rows_are_slack_and_a_basis_can_be_restored():
    lp = build(*random_program(np.random.default_rng(3), 8, 5))
    lp.solve()
    columns, rows = lp.basic()
    assert columns.sum() + rows.sum() == lp.n_rows
    assert (lp.row_duals[rows] == 0).all()
    stored, best = lp.basis(), lp.value
    lp.set_costs(np.arange(5), -np.ones(5))
    lp.solve()
    lp.set_costs(np.arange(5), random_program(np.random.default_rng(3), 8, 5)[0])
    lp.restore(stored)
    lp.solve()
    assert lp.value == pytest.approx(best)
    assert lp.iterations == 0


def test_limits_leave_usable_duals():
    rng = np.random.default_rng(0)
    matrix = rng.random((60, 80)) * (rng.random((60, 80)) < 0.3)
    data = (rng.random(80), np.zeros(80), np.ones(80), matrix, np.full(60, -np.inf), np.ones(60))
    lp = build(*data)
    assert lp.solve(iteration_limit=5) is LpStatus.LIMIT
    assert lp.iterations <= 5
    early = dual_bound(lp.row_duals, *data)
    assert lp.solve() is LpStatus.OPTIMAL
    assert early >= lp.value - 1e-9
    assert lp.solve(time_limit=10.0) is LpStatus.OPTIMAL


def test_degenerate_programs():
    empty = LinearProgram()
    assert empty.solve() is LpStatus.OPTIMAL
    assert empty.value == 0.0
    open_ended = LinearProgram()
    open_ended.add_columns([1.0], [0.0], [np.inf])
    assert open_ended.solve() is LpStatus.UNBOUNDED
    crossed = LinearProgram()
    crossed.add_columns([1.0], [1.0], [0.0])
    assert crossed.solve() is LpStatus.INFEASIBLE
    assert crossed.farkas() is None
    crossed.set_column_bounds([0], [0.0], [1.0])
    assert crossed.solve() is LpStatus.OPTIMAL
    crossed.set_column_bounds([0], [2.0], [1.0])
    assert crossed.solve() is LpStatus.INFEASIBLE


def test_rows_that_highs_cannot_hold_relax_the_program():
    lp = LinearProgram()
    lp.add_columns([1.0, 1.0], [0.0, 0.0], [3.0, 3.0])
    lp.add_rows([-np.inf] * 3, [1.0, -1.0, 4.0], sparse.csr_array([[1.0, 0.0], [1e16, 1.0], [1.0, 1.0]]))
    assert lp.n_rows == 3
    assert lp.solve() is LpStatus.OPTIMAL
    assert lp.value == pytest.approx(4.0)
    assert lp.row_duals[1] == 0.0


def test_wrong_sizes_are_refused():
    lp = LinearProgram()
    with pytest.raises(ValueError, match="different lengths"):
        lp.add_columns([1.0, 2.0], [0.0], [1.0])
    with pytest.raises(ValueError, match="refused"):
        lp.set_costs([3], [1.0])
