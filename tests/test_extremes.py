"""Models at the edge of the language: blocks without a point, huge numbers beside small ones, functions of nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map
from tests.models import discrete_model

from certimap import Block, Model, Status, linear, parity, poisson, polynomial, potts, ridge, table
from certimap.engines.cut_master import CutMaster, Relaxation
from certimap.graph.blocks import merge
from certimap.graph.compile import compile_model
from certimap.solver import solve

INF = np.inf
ENGINES = ("auto", "branch-and-cut", "gbd")


def contradictory_block():
    """Two tables of one block exclude each other's states; a third factor stands beside them."""
    m = Model()
    a, b = m.categorical("a", 2), m.categorical("b", 2)
    m.add(Block([table([a, b], [[0.0, 1.0], [-INF, -INF]]), table(a, [-INF, 0.5])]), potts(a, b, 1.0))
    return m


def contradictory_after_maximising_out():
    """The private variable has a state for either neighbour, but none for both."""
    m = Model()
    a, b, hidden = m.categorical("a", 2), m.categorical("b", 2), m.categorical("hidden", 2)
    m.add(Block([table([a, hidden], [[0, -INF], [0, -INF]]), table([hidden, b], [[-INF, -INF], [0, 1]])], [hidden]))
    return m


@pytest.mark.parametrize("algorithm", ENGINES)
@pytest.mark.parametrize("make", [contradictory_block, contradictory_after_maximising_out])
def test_a_block_without_any_point_makes_the_model_infeasible(make, algorithm):
    m = make()
    assert_solved(m, solve(m, algorithm=algorithm), optimum=-math.inf, status=Status.INFEASIBLE)


def large_and_holed(seed):
    """Tables of a few possible states whose values differ by many orders of magnitude."""
    rng = np.random.default_rng(seed)
    m = Model()
    x = [m.categorical(f"x{k}", 3) for k in range(4)]
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2)):
        values = rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-6, 9, size=(3, 3))
        values[rng.random((3, 3)) < 0.5] = -INF
        values[rng.integers(3), rng.integers(3)] = 0.0
        m.add(table([x[i], x[j]], values))
    return m


@pytest.mark.parametrize("seed", range(12))
def test_large_numbers_cost_neither_validity_nor_an_answer(seed):
    m = large_and_holed(seed)
    optimum, _ = enumerate_map(m)
    for algorithm in ("auto", "branch-and-cut", "elimination"):
        result = solve(m, algorithm=algorithm)
        assert_solved(m, result, optimum=optimum)
        assert result.status is (Status.INFEASIBLE if optimum == -INF else Status.OPTIMAL)


def test_large_excluded_values_leave_the_proof_of_a_small_optimum_exact():
    m = Model()
    a, hidden, b = m.binary("a"), m.categorical("hidden", 2), m.binary("b")
    near, far = table([a, hidden], [[-1e8, -10.0], [-1e-5, 0.0]]), table([hidden, b], [[0.07, -3.6e6], [-1e3, 1e4]])
    m.add(Block([near, far], [hidden]), table(a, [-INF, 0.01]), parity([a, b]))
    result = solve(m)
    report = assert_solved(m, result, optimum=enumerate_map(m)[0], status=Status.OPTIMAL)
    assert report.gap < 1e-8


def test_a_large_value_that_a_constraint_excludes_is_covered_by_the_margin_of_an_elimination():
    m = Model()
    a, b = m.categorical("a", 2), m.categorical("b", 2)
    m.add(table([a, b], [[0.70518055, -1.0], [-INF, -INF]]), parity([a.is_(0)]), linear([(a.is_(1), 1.7e8)]))
    assert_solved(m, solve(m, algorithm="elimination"), optimum=0.70518055)


def test_a_huge_penalty_between_states_does_not_blur_the_proof_of_the_others():
    m = Model()
    a, b = m.binary("a"), m.categorical("b", 2)
    m.add(potts(a, b, -484965071.93512756), parity([a]))
    report = assert_solved(m, solve(m), optimum=0.0, status=Status.OPTIMAL)
    assert report.upper_bound < 1e-12


def test_tiny_weights_on_cuts_of_huge_coefficients_keep_their_digits():
    m = Model()
    a, b = m.categorical("a", 3), m.categorical("b", 3)
    m.add(table([b, a], [[-1e-9, 68211.0, -1e-9], [0.0, 1.0, -1e-9], [-INF, 0.0, -1e-9]]))
    m.add(table(b, [-INF, -INF, -1e-9]), table(a, [2.0, -1e-9, -1e-9]))
    assert_solved(m, solve(m), optimum=-2e-9, status=Status.OPTIMAL)


def test_costs_that_cancel_are_added_up_without_rounding():
    m = Model()
    a = m.categorical("a", 2)
    m.add([table(a, [v, 0.0]) for v in (1e15, 0.3, -1e15, 0.4)])
    result = solve(m, gap=1e-12)
    assert_solved(m, result, optimum=0.7, status=Status.OPTIMAL)
    assert result.log_map == pytest.approx(0.7, abs=1e-15)


@pytest.mark.parametrize("coefficients", [[0.0], [1.5], [0.0, 0.0, 0.0]])
def test_a_constant_polynomial_has_a_verified_bound(coefficients):
    m = Model()
    x, c = m.real("x", -1.0, 1.0), m.categorical("c", 3)
    m.add(ridge(0.5 * x, polynomial(coefficients)), ridge(-0.6 * c.is_(0) - 1.2, polynomial(coefficients)))
    assert_solved(m, solve(m), optimum=2.0 * coefficients[0], status=Status.OPTIMAL)


def test_slopes_that_no_linear_program_holds_leave_a_valid_bound():
    m = Model()
    x = m.real("x", 6.708, 6.708 + 1e-6)
    m.add(ridge(50.0 * x + 200.0, poisson(3.0)))
    assert_solved(m, solve(m, gap=0.1, max_nodes=50))


def test_merged_tables_are_never_below_the_exact_sum():
    rng = np.random.default_rng(0)
    m = Model()
    a, b = m.categorical("a", 3), m.categorical("b", 4)
    parts = [rng.normal(size=(3, 4)) * 10.0 ** rng.integers(-9, 9, size=(3, 4)) for _ in range(5)]
    parts[2][1, 1] = -INF
    joint = merge([table([a, b], p) for p in parts], []).log_values
    assert joint[1, 1] == -INF
    for state in np.ndindex(3, 4):
        if state != (1, 1):
            exact = sum(Fraction(p[state]) for p in parts)
            assert (
                exact
                <= Fraction(joint[state])
                <= exact + Fraction(2) ** -50 * sum(abs(Fraction(p[state])) for p in parts)
            )
    whole = merge([table([a, b], np.round(p)) for p in parts[:2]], []).log_values
    assert (whole == np.round(parts[0]) + np.round(parts[1])).all()


@pytest.mark.parametrize("seed", range(4))
def test_without_a_working_linear_program_the_tree_still_closes(seed, monkeypatch):
    """Every box then has the bound of its blocks alone, and private variables are not split on."""
    monkeypatch.setattr(CutMaster, "solve", lambda self, time_limit=None: Relaxation(INF, None, None, None))
    m = discrete_model(np.random.default_rng(seed), private=True, max_states=300)
    optimum, _ = enumerate_map(m)
    result = solve(m, algorithm="branch-and-cut")
    assert_solved(m, result, optimum=optimum)
    assert result.status is (Status.INFEASIBLE if optimum == -INF else Status.OPTIMAL)
    hidden = compile_model(m).hidden
    assert hidden.any()
    assert not any(hidden[node.column] for node in result.certificate.nodes[1:])
