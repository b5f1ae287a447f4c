"""The parity oracle against enumeration: validity, exact separation of the hull, conjugates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from certimap import Model, fix, parity
from certimap.graph.compile import compile_model
from certimap.oracles.cuts import Box
from certimap.oracles.protocol import oracles_for


def build(count, parities):
    model = Model()
    for i, odd in enumerate(parities):
        model.add(parity(model.binary(f"x{i}", shape=count), odd=odd))
    graph = compile_model(model)
    (oracle,) = oracles_for(graph)
    return graph, oracle


def feasible_points(oracle, i):
    points = np.array(list(product((0.0, 1.0), repeat=oracle.scope.shape[1])))
    return points[points.sum(axis=1) % 2 == oracle.odd[i]]


def in_hull(points, x):
    left = np.vstack([points.T, np.ones(len(points))])
    return linprog(np.zeros(len(points)), A_eq=left, b_eq=np.append(x, 1.0), method="highs").success


def root(graph):
    return Box(graph.lower.copy(), graph.upper.copy())


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_separation_describes_the_hull(count):
    rng = np.random.default_rng(count)
    graph, oracle = build(count, [True, False])
    for _ in range(30):
        y = np.round(rng.random(graph.n_columns) ** rng.choice([0.1, 1.0, 10.0], size=graph.n_columns), 2)
        y[rng.random(len(y)) < 0.3] = rng.integers(2)
        cuts = oracle.separate(y, np.zeros(2), root(graph), 1e-7)
        assert cuts.feasibility.all()
        assert not cuts.local.any()
        for i in range(2):
            points, x = feasible_points(oracle, i), y[oracle.scope[i]]
            own = np.flatnonzero(cuts.term == i)
            assert in_hull(points, x) == (len(own) == 0) == (oracle.value(y)[i] == 0.0)
            for k in own:
                assert (points @ cuts.u[k] + cuts.h[k] >= 0.0).all()
                assert x @ cuts.u[k] + cuts.h[k] < 0.0


@pytest.mark.parametrize("count", [1, 4])
def test_whole_points_conjugates_and_boxes(count):
    rng = np.random.default_rng(count)
    graph, oracle = build(count, [True, False])
    for _ in range(20):
        y = rng.integers(2, size=graph.n_columns).astype(float)
        exact = [f.value(y[s]) for f, s in zip(oracle.batch.factors, oracle.scope, strict=True)]
        assert oracle.value(y).tolist() == exact
        assert oracle.upper(Box(y, y)).tolist() == exact
        u = rng.normal(size=oracle.scope.shape)
        for i in range(2):
            h, x = oracle.conjugate(i, u[i], root(graph))
            best = (-feasible_points(oracle, i) @ u[i]).max()
            assert best <= h <= best + 1e-12
            assert -(x @ u[i]) == pytest.approx(best)
            assert oracle.batch.factors[i].value(x) == 0.0
    assert oracle.upper(root(graph)).tolist() == [0.0, 0.0]


def test_values_are_bounded_by_zero():
    graph, oracle = build(3, [True, False])
    for cuts in (
        oracle.proposals(root(graph)),
        oracle.separate(np.full(graph.n_columns, 0.5), np.ones(2), root(graph), 1e-7),
    ):
        assert not cuts.feasibility.any()
        assert cuts.term.tolist() == [0, 1]
        assert not cuts.u.any()
        assert not cuts.h.any()


def test_gaps_are_blamed_on_fractional_items():
    model = Model()
    x = model.binary("x", shape=3)
    model.add(parity(x))
    model.constrain(fix(x[0], 1))
    graph = compile_model(model)
    (oracle,) = oracles_for(graph)
    y = np.zeros(graph.n_columns)
    y[oracle.scope[0]] = [1.0, 0.5, 0.5]
    assert oracle.branch_scores(y, np.array([1.0])).tolist() == [[0.0, 0.5, 0.5]]
