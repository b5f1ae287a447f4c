"""Gated ridges: the envelope of z g(s) over {0, 1} x [a, b] against the convex hull of sampled points."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model, gated, gaussian, laplace, logistic, poisson, polynomial, student_t
from certimap.graph.compile import compile_model
from certimap.model.univariate import Univariate
from certimap.oracles.protocol import Box, Oracle, oracles_for

FUNCTIONS = [
    gaussian(0.4, 0.5),
    laplace(-0.2, 0.7),
    logistic(1),
    poisson(2.0),
    student_t(0.5, 0.3),
    polynomial([0.0, 0.3, 2.0, 0.0, -1.0]),
]
A, B = -1.5, 2.0


def single(function: Univariate) -> tuple[Oracle, Box, int, int]:
    m = Model()
    z, s = m.binary("z"), m.real("s", A, B)
    m.add(gated(z, s, function))
    graph = compile_model(m)
    (oracle,) = oracles_for(graph)
    gate, column = oracle.scope[0]
    return oracle, Box(graph.lower, graph.upper), int(gate), int(column)


def hull(function: Univariate, z: float, s: float) -> float:
    """The concave envelope at (z, s) of z g(s) sampled on both lines."""
    grid = np.linspace(A, B, 701)
    values = np.concatenate([np.zeros(701), [function(float(p)) for p in grid]])
    gates = np.repeat([0.0, 1.0], 701)
    rows = np.stack([np.ones(1402), gates, np.tile(grid, 2)])
    solution = linprog(-values, A_eq=rows, b_eq=[1.0, z, s], method="highs")
    return float(-solution.fun)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
def test_cuts_are_the_envelope(function: Univariate) -> None:
    oracle, root, gate, column = single(function)
    for z, s in [(0.0, 0.3), (1.0, 0.7), (0.5, 0.1), (0.2, 1.8), (0.7, -1.4), (0.05, 1.0), (0.9, 0.45), (0.3, A)]:
        y = np.zeros(len(root.lower))
        y[gate], y[column] = z, s
        cuts = oracle.separate(y, np.array([50.0]), root, 1e-9)
        height = float(cuts.u[0] @ y[oracle.scope[0]] + cuts.h[0])
        assert height == pytest.approx(hull(function, z, s), abs=2e-3)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
def test_fixed_gates(function: Univariate) -> None:
    oracle, root, gate, _ = single(function)
    closed, opened = (Box(root.lower.copy(), root.upper.copy()) for _ in range(2))
    closed.upper[gate] = 0.0
    opened.lower[gate] = 1.0
    top = max(function(float(s)) for s in np.linspace(A, B, 4001))
    assert oracle.upper(closed)[0] == 0.0
    assert oracle.upper(opened)[0] == pytest.approx(top, abs=1e-3)
    assert oracle.upper(root)[0] == pytest.approx(max(top, 0.0), abs=1e-3)
    u = np.array([0.7, -0.4])
    h, best = oracle.conjugate(0, u, closed)
    assert h == pytest.approx(max(0.4 * A, 0.4 * B))
    assert best[0] == 0.0
    h, best = oracle.conjugate(0, u, opened)
    assert h == pytest.approx(max(function(float(s)) + 0.4 * s for s in np.linspace(A, B, 4001)) - 0.7, abs=1e-3)
    assert best[0] == 1.0


def test_cuts_from_the_root_range_are_global() -> None:
    oracle, root, gate, column = single(FUNCTIONS[0])
    y = np.zeros(len(root.lower))
    y[gate], y[column] = 0.5, 0.0
    assert not oracle.separate(y, np.ones(1), root, 1e-9).local.any()
    half = Box(root.lower.copy(), root.upper.copy())
    half.upper[column] = 0.5
    assert oracle.separate(y, np.ones(1), half, 1e-9).local.all()
    assert oracle.proposals(half).local.all()


def test_concave_functions_need_no_spatial_branching() -> None:
    for function in FUNCTIONS:
        concave = function.kind not in ("student_t", "polynomial")
        assert single(function)[0].exact_at_integers == concave
