"""The paper's loop: exact where its theory holds, honest where it does not (see also tests/test_theory.py)."""

import math

import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map

from certimap import (
    Model,
    Status,
    StopReason,
    at_most,
    black_box,
    fix,
    gaussian,
    laplace,
    linear,
    logistic,
    must_link,
    ridge,
    table,
)
from certimap.solver import solve


def tables(seed):
    """Categorical tables only: one-hot coding makes every envelope exact at whole points."""
    rng = np.random.default_rng(seed)
    m = Model()
    z = m.categorical("z", 3, shape=4)
    for a, b in ((0, 1), (1, 2), (2, 3), (3, 0)):
        m.add(table([z[a], z[b]], rng.normal(size=(3, 3))))
    if seed % 2:
        m.constrain(at_most(2, z, value=0), must_link(z[0], z[2]))
    return m


@pytest.mark.parametrize("seed", range(4))
def test_tables_in_one_hot_coding_end_with_the_optimum(seed):
    m = tables(seed)
    optimum, _ = enumerate_map(m)
    result = solve(m, algorithm="gbd")
    assert_solved(m, result, optimum=optimum, status=Status.OPTIMAL)
    assert result.local_bound is None


def test_concave_factors_close_the_gap():
    m = Model()
    x, b = m.real("x", -2.0, 2.0), m.binary("b")
    m.add(ridge(x - 1.5 * b, gaussian(0.2)), ridge(x, laplace(0.5)), ridge(2 * x, logistic(-1)))
    m.add(linear([(b, 0.4)]))
    reference = solve(m)
    result = solve(m, algorithm="gbd", gap=1e-4)
    assert_solved(m, result, optimum=reference.log_map - 1e-9)
    assert result.status is Status.OPTIMAL
    assert result.log_map == pytest.approx(reference.log_map, abs=2e-4)


def test_bounds_of_the_history_never_rise():
    result = solve(tables(0), algorithm="gbd")
    bounds = [r.bound for r in result.history]
    assert bounds == sorted(bounds, reverse=True)
    assert all(r.bound >= result.log_map - 1e-9 for r in result.history)


def test_excluded_states_become_feasibility_constraints():
    m = Model()
    z = m.categorical("z", 3, shape=3)
    forbidden = np.where(np.eye(3) > 0, -np.inf, 0.0)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        m.add(table([z[a], z[b]], forbidden + np.arange(9).reshape(3, 3) / 7.0))
    optimum, _ = enumerate_map(m)
    assert_solved(m, solve(m, algorithm="gbd"), optimum=optimum, status=Status.OPTIMAL)


def test_infeasible_models_are_named_as_such():
    m = Model()
    z = m.categorical("z", 2, shape=2)
    m.add(table(z, [[-np.inf, 1.0], [1.0, -np.inf]], name="differ"))
    m.constrain(must_link(z[0], z[1]).named("same"))
    result = solve(m, algorithm="gbd")
    assert_solved(m, result, optimum=-math.inf, status=Status.INFEASIBLE)
    assert sorted(result.conflict) == ["differ", "same"]


@pytest.mark.parametrize(
    "limits, reason", [({"max_nodes": 1}, StopReason.NODES), ({"time_limit": 1e-9}, StopReason.TIME)]
)
def test_limits_leave_a_valid_bound(limits, reason):
    m = tables(0)
    result = solve(m, algorithm="gbd", **limits)
    assert result.stop_reason is reason
    assert math.isfinite(result.upper_bound)
    assert_solved(m, result, optimum=enumerate_map(m)[0])


def test_the_node_limit_covers_the_nodes_of_the_masters():
    m = tables(0)
    result = solve(m, algorithm="gbd", max_nodes=4)
    assert result.stop_reason is StopReason.NODES
    assert result.statistics["nodes"] == 4
    assert_solved(m, result, optimum=enumerate_map(m)[0])


def test_ctrl_c_reaches_the_master():
    m = tables(0)

    def interrupt(record):
        if record.source == "C":
            raise KeyboardInterrupt

    result = solve(m, algorithm="gbd", callback=interrupt)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert_solved(m, result, optimum=enumerate_map(m)[0])


class Concave:
    """-(x - 0.3)^2: even where the local search is right, the loop cannot know, so nothing is certified."""

    def value(self, x):
        return -((float(x[0]) - 0.3) ** 2)

    def upper(self, lower, upper):
        return -((float(np.clip(0.3, lower[0], upper[0])) - 0.3) ** 2)


def test_bounds_with_black_boxes_are_local_only():
    m = Model()
    x = m.real("x", -1.0, 1.0)
    m.add(black_box(x, Concave()))
    m.constrain(fix(m.binary("b"), 1))
    result = solve(m, algorithm="gbd", gap=1e-4)
    assert result.upper_bound == math.inf
    assert result.certificate is None
    assert result.status is Status.FEASIBLE
    assert result.local_bound == pytest.approx(0.0, abs=1e-3)
    assert result.log_map == pytest.approx(0.0, abs=1e-3)
