"""The dual simplex method for joint tables against dense linear programs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.oracles.finite import assert_separation_is_exact, oracle_of, random_marginals

from certimap import Model, table
from certimap.oracles import multimarginal
from certimap.oracles.multimarginal import GAVE_UP, Multimarginal
from certimap.oracles.transport import FEASIBILITY, NO_CUT, OPTIMALITY

SHAPES = [(5,), (2, 2, 2, 2), (3, 2, 4), (1, 3, 1, 2), (3, 3, 3, 3), (2,) * 7]
HIGH = 1e9  # above every envelope
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def every_state(shape):
    """The list of all states, as positions, and where the variables' positions start."""
    starts = np.cumsum([0, *shape])
    states = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=-1)
    return (states + starts[:-1]).astype(np.int32)[None], starts


def tables(rng, n_terms, n_states, *, excluded=0.0, whole=False):
    """Random values, whole numbers with many ties if asked for, and at least one finite entry each."""
    theta = (
        rng.integers(-1, 2, size=(n_terms, n_states)).astype(float) if whole else rng.normal(size=(n_terms, n_states))
    )
    theta[rng.random(theta.shape) < excluded] = -np.inf
    theta[np.arange(n_terms), rng.integers(n_states, size=n_terms)] = 0.5
    return theta


def points(rng, n_terms, starts, style):
    """Marginals inside, on faces, at centres of faces or at vertices of the product of simplices."""
    parts = []
    for first, last in pairwise(starts):
        weights = (
            np.ones((n_terms, last - first)) if style == "centre" else rng.gamma(0.7, size=(n_terms, last - first))
        )
        closed = rng.random(weights.shape) < {"inside": 0.0, "face": 0.4, "centre": 0.2, "vertex": 1.0}[style]
        closed[np.arange(n_terms), rng.integers(last - first, size=n_terms)] = False
        weights[closed] = 0.0
        parts.append(weights / weights.sum(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)


def envelope(theta, states, x):
    finite = theta > -np.inf
    matrix = np.zeros((len(x), finite.sum()))
    for column in states[finite].T:
        matrix[column, np.arange(finite.sum())] = 1.0
    solution = linprog(-theta[finite], A_eq=matrix, b_eq=x, method="highs", options=PRECISE)
    return -solution.fun if solution.success else -np.inf


def assert_exact(simplex, theta, listed, x):
    """With t far above, every term gets multipliers whose cut touches the envelope, or a proof that there is none."""
    n_terms = len(theta)
    u, kinds = simplex.separate(np.arange(n_terms), x, np.full(n_terms, HIGH), 1e-8)
    for i in range(n_terms):
        states = listed[i if len(listed) > 1 else 0]
        finite = theta[i] > -np.inf
        exact = envelope(theta[i], states, x[i])
        sums = u[i][states].sum(axis=1)[finite]
        if exact == -np.inf:
            assert kinds[i] == FEASIBILITY
            assert np.abs(u[i]).max() <= 1.0
            assert u[i] @ x[i] + (-sums).max() < -1e-8
        else:
            assert kinds[i] == OPTIMALITY
            assert u[i] @ x[i] + (theta[i][finite] - sums).max() == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("excluded", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("shape", SHAPES)
def test_touches_the_envelope_from_one_point_to_the_next(shape, excluded, whole):
    rng = np.random.default_rng(3)
    listed, starts = every_state(shape)
    theta = tables(rng, 3, listed.shape[1], excluded=excluded, whole=whole)
    simplex = Multimarginal(theta, listed, starts)
    x = points(rng, 3, starts, "inside")
    assert_exact(simplex, theta, listed, x)
    assert_exact(simplex, theta, listed, 0.9 * x + 0.1 * points(rng, 3, starts, "vertex"))
    for style in ("vertex", "face", "centre", "inside"):
        assert_exact(simplex, theta, listed, points(rng, 3, starts, style))


def test_lists_of_states_differ_from_term_to_term():
    rng = np.random.default_rng(4)
    starts = np.array([0, 9, 18, 27, 36])
    listed = (rng.integers(9, size=(4, 60, 4)) + starts[:-1]).astype(np.int32)
    theta = tables(rng, 4, 60)
    simplex = Multimarginal(theta, listed, starts)
    for _ in range(3):
        weights = rng.dirichlet(np.full(60, 0.05), size=4)  # of the listed states, so that some p exists
        x = np.zeros((4, 36))
        for i, weight in enumerate(weights):
            for column in listed[i].T:
                np.add.at(x[i], column, weight)
        assert_exact(simplex, theta, listed, x)
        assert_exact(simplex, theta, listed, points(rng, 4, starts, "inside"))


def test_list_order_is_respected():
    rng = np.random.default_rng(5)
    listed, starts = every_state((3, 2, 2))
    shuffled = listed[:, rng.permutation(12)]
    theta = tables(rng, 2, 12)
    assert_exact(Multimarginal(theta, shuffled, starts), theta, shuffled, points(rng, 2, starts, "inside"))


def test_no_cut_where_t_is_within_the_tolerance():
    rng = np.random.default_rng(6)
    listed, starts = every_state((2, 2, 2, 2))
    theta = tables(rng, 5, 16)
    x = points(rng, 5, starts, "inside")
    exact = np.array([envelope(theta[i], listed[0], x[i]) for i in range(5)])
    simplex = Multimarginal(theta, listed, starts)
    _, kinds = simplex.separate(np.arange(5), x, exact + np.array([-1.0, 0.0, 0.9e-6, 1.1e-6, 1.0]), 1e-6)
    assert kinds.tolist() == [NO_CUT, NO_CUT, NO_CUT, OPTIMALITY, OPTIMALITY]


def test_terms_are_independent_of_each_other():
    rng = np.random.default_rng(7)
    listed, starts = every_state((3, 3, 3))
    theta = tables(rng, 6, 27, excluded=0.2)
    together, alone = (Multimarginal(theta, listed, starts) for _ in range(2))
    for _ in range(4):
        x, t = points(rng, 6, starts, "face"), rng.normal(size=6)
        u, kinds = together.separate(np.arange(6), x, t, 1e-8)
        for i in rng.permutation(6):
            u_i, kind = alone.separate(np.array([i]), x[[i]], t[[i]], 1e-8)
            assert kind[0] == kinds[i]
            assert (u_i[0] == u[i]).all()


def test_of_optimal_multipliers_the_deepest_at_the_centre():
    # At a vertex many cuts touch; the deepest at the centre solves a program with the vertex' tightness as a row.
    rng = np.random.default_rng(8)
    listed, starts = every_state((2, 3, 2))
    theta = tables(rng, 4, 12)
    x = points(rng, 4, starts, "vertex")
    u, _ = Multimarginal(theta, listed, starts).separate(np.arange(4), x, np.full(4, HIGH), 1e-8)
    indicators = np.zeros((12, 7))
    indicators[np.arange(12)[:, None], listed[0]] = 1.0
    centre = np.repeat(1.0 / np.diff(starts), np.diff(starts))
    for i in range(4):
        h = (theta[i] - indicators @ u[i]).max()
        touching = theta[i][(x[i][listed[0]] == 1.0).all(axis=1)]
        best = linprog(centre, A_ub=-indicators, b_ub=-theta[i], A_eq=x[[i]], b_eq=touching, bounds=(None, None))
        assert u[i] @ centre + h == pytest.approx(best.fun, abs=1e-8)


def test_nearly_feasible_points_get_an_optimality_cut():
    # The master's points satisfy rows to its tolerance only; such an excess must not hide the envelope.
    listed, starts = every_state((2, 2, 2))
    theta = np.full((1, 8), -np.inf)
    theta[0, [0, 7]] = 1.0, 2.0  # all three equal
    x = np.array([[0.5, 0.5, 0.5 + 1e-7, 0.5 - 1e-7, 0.5, 0.5]])
    for tolerance, expected in ((1e-6, OPTIMALITY), (1e-9, FEASIBILITY)):
        u, kinds = Multimarginal(theta, listed, starts).separate(np.zeros(1, int), x, np.array([HIGH]), tolerance)
        assert kinds.tolist() == [expected]
    assert np.abs(u @ x[0]) <= 1.0


def test_no_state_at_all():
    listed, starts = every_state((2, 2, 2))
    x = points(np.random.default_rng(12), 1, starts, "inside")
    u, kinds = Multimarginal(np.full((1, 8), -np.inf), listed, starts).separate(np.zeros(1, int), x, np.zeros(1), 1e-8)
    assert kinds.tolist() == [FEASIBILITY]
    assert np.isfinite(u).all()


def test_many_pivots_lead_to_a_fresh_start():
    rng = np.random.default_rng(9)
    listed, starts = every_state((3, 3, 3))
    theta = tables(rng, 2, 27)
    simplex = Multimarginal(theta, listed, starts)
    for _ in range(30):
        assert_exact(simplex, theta, listed, points(rng, 2, starts, "face"))
    simplex._pivots[:] = 10**6
    assert_exact(simplex, theta, listed, points(rng, 2, starts, "inside"))
    assert (simplex._pivots < 1000).all()


def test_spoilt_tableaus_are_noticed():
    rng = np.random.default_rng(10)
    listed, starts = every_state((3, 3, 3))
    theta = tables(rng, 2, 27)
    simplex = Multimarginal(theta, listed, starts)
    x = points(rng, 2, starts, "inside")
    assert_exact(simplex, theta, listed, x)
    simplex._tableau *= 1.0 + 1e-4 * rng.normal(size=simplex._tableau.shape)
    assert_exact(simplex, theta, listed, x)


@pytest.mark.parametrize("excluded", [0.0, 0.5])
def test_the_oracle_falls_back_on_a_general_solver(excluded, monkeypatch):
    monkeypatch.setattr(multimarginal, "MOST_ENTRIES", 0)
    rng = np.random.default_rng(11)
    model = Model()
    for i in range(3):
        values = tables(rng, 1, 24, excluded=excluded).reshape(2, 3, 4)
        model.add(table([model.categorical(f"x{i}{d}", k) for d, k in enumerate(values.shape)], values))
    graph, oracle = oracle_of(model)
    _, kinds = oracle._multimarginal.separate(np.arange(1), np.ones((1, 9)), np.zeros(1), 1e-7)
    assert kinds.tolist() == [GAVE_UP]
    for _ in range(3):
        assert_separation_is_exact(oracle, graph, random_marginals(oracle, graph, rng))
