"""`solve`: arguments, edge cases, and what a result says."""

import math

import numpy as np
import pytest
from tests.helpers import assert_solved

from certimap import (
    Model,
    ModelError,
    Status,
    StopReason,
    cannot_link,
    fix,
    gaussian,
    linear,
    log,
    must_link,
    potts,
    ridge,
    soft,
    table,
)
from certimap.solver import solve


def coin():
    m = Model()
    m.add(table(m.categorical("z", 2), [0.25, -1.0]))
    return m


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"algorithm": "magic"}, r"solve: algorithm must be one of auto, branch-and-cut, .*, got 'magic'"),
        ({"gap": -1e-9}, r"solve: gap must be a finite number >= 0, got -1e-09"),
        ({"gap": math.nan}, r"solve: gap must be a finite number >= 0, got nan"),
        ({"gap": math.inf}, r"solve: gap must be .* got inf"),
        ({"max_nodes": 0}, r"solve: max_nodes must be positive or None, got 0"),
        ({"time_limit": -1.0}, r"solve: time_limit must be positive or None, got -1.0"),
        ({"time_limit": math.nan}, r"solve: time_limit must be positive or None, got nan"),
        ({"gap": "x"}, r"solve: gap must be .* got 'x'"),
        ({"max_nodes": "many"}, r"solve: max_nodes must be positive or None, got 'many'"),
        ({"seed": -1}, r"solve: seed must be a whole number >= 0, got -1"),
        ({"n_jobs": 0}, r"solve: n_jobs must be a whole number other than 0 .*, got 0"),
        ({"callback": 3}, r"solve: callback must be callable or None, got 3"),
        ({"memory_limit": 0.0}, r"solve: memory_limit must be positive or None, got 0.0"),
    ],
)
def test_wrong_arguments_say_what_is_allowed(arguments, message):
    with pytest.raises(ModelError, match=message):
        solve(coin(), **arguments)


def empty(m):
    return 0.0


def only_a_constant(m):
    m.categorical("c", 1)
    m.add(linear([], 3.5))
    return 3.5


def a_point_interval(m):
    m.add(ridge(m.real("x", 1.0, 1.0), gaussian(0.0)))
    return -0.5


def a_linear_function(m):
    x, i = m.real("x", -1.0, 2.0), m.integer("i", -3, 3)
    m.add(linear({x: 1.5, i: -1.0}, 1.0))
    m.constrain(linear({x: 1.0, i: -1.0}) <= 4.0)
    return 6.0  # x = 2 and i = -2; i = -3 would leave x <= 1


def a_huge_integer(m):
    m.add(ridge(m.integer("i", -(10**4), 10**4), gaussian(123.4)))
    return -0.08


def logs_of_a_simplex(m):
    p = m.simplex("p", 3, 0.01)
    m.add([ridge(p[k], log(k + 1)) for k in range(3)])
    return sum(w * math.log(w / 6) for w in (1, 2, 3))


def a_linear_function_of_a_matrix(m):
    q = m.positive_definite("q", 2, 0.5, 2.0)
    m.add(linear([(q[0, 0], 1.0), (q[1, 0], -2.0), (q[1, 1], 0.5)]))
    mu = np.linalg.eigvalsh([[1.0, -1.0], [-1.0, 0.5]])
    return float(np.where(mu > 0, 2.0 * mu, 0.5 * mu).sum())


def an_array_without_entries(m):
    m.categorical("z", 3, shape=(2, 0))
    return 0.0


def a_soft_link_of_reals(m):
    x, y = m.real("x", 0.0, 1.0), m.real("y", -1.0, 2.0)
    m.add(soft(must_link(x, y), 1.0), linear({x: 0.3, y: -0.4}))
    return 0.0  # apart, x = 1 and y = -1 give 0.7 - 1


def a_soft_cap_that_is_worth_breaking(m):
    x = m.real("x", 0.0, 1.0)
    m.add(soft(x <= 0.5, 0.2), linear({x: 1.0}))
    return 0.8


def a_soft_constraint_that_can_never_hold(m):
    a = m.categorical("a", 3)
    m.add(soft(cannot_link(a, a), 2.0), table(a, [0.0, 1.0, 0.5]))
    return -1.0


def everything_fixed(m):
    z = m.categorical("z", 3, shape=2)
    m.add(potts(z[0], z[1], 2.0))
    m.constrain(fix(z, [1, 1]))
    return 2.0


EDGES = [
    empty,
    only_a_constant,
    a_point_interval,
    a_linear_function,
    a_huge_integer,
    logs_of_a_simplex,
    a_linear_function_of_a_matrix,
    an_array_without_entries,
    a_soft_link_of_reals,
    a_soft_cap_that_is_worth_breaking,
    a_soft_constraint_that_can_never_hold,
    everything_fixed,
]


@pytest.mark.parametrize("build", EDGES)
def test_edge_cases_are_solved(build):
    m = Model()
    optimum = build(m)
    result = solve(m)
    assert_solved(m, result, status=Status.OPTIMAL)
    assert result.log_map == pytest.approx(optimum, abs=2e-6 * max(1.0, abs(optimum)))
    assert result.upper_bound >= optimum - 1e-12


def test_equations_without_whole_solutions_are_infeasible():
    m = Model()
    a = m.integer("a", 0, 5, shape=2)
    m.add(ridge(a[0], gaussian(2.0)))
    m.constrain((2 * a[0] + 4 * a[1] == 7).named("odd"))
    result = solve(m)
    assert_solved(m, result, status=Status.INFEASIBLE)
    assert result.conflict == ("odd",)
    assert result.assignment is None
    assert result.gap == 0.0


def test_a_result_names_what_it_proved():
    result = solve(coin())
    assert result.assignment == {"z": 0}
    assert (result.log_map, result.status, result.stop_reason) == (0.25, Status.OPTIMAL, StopReason.TOLERANCE)
    assert 0.0 <= result.gap <= 1e-6
    assert result.gap == result.upper_bound - result.log_map
    assert set(result.statistics) >= {"nodes", "iterations", "seconds", "lp_solves", "cuts"}


def test_arrays_come_back_as_arrays():
    m = Model()
    z = m.categorical("z", 3, shape=(2, 2))
    m.add([table(v, np.eye(3)[k % 3]) for k, v in enumerate(z.ravel())])
    assignment = solve(m).assignment
    assert assignment["z"].tolist() == [[0, 1], [2, 0]]


def test_the_model_is_not_changed_by_solving():
    m = coin()
    before = m.fingerprint()
    solve(m)
    assert m.fingerprint() == before


def test_a_looser_gap_stops_earlier_and_says_so():
    m = Model()
    x = m.real("x", -2.0, 2.0)
    m.add(ridge(x, gaussian(0.3)))
    result = solve(m, gap=0.5)
    assert result.relative_gap <= 0.5
    assert result.status is Status.OPTIMAL
    assert result.certificate.tolerance == 0.5
