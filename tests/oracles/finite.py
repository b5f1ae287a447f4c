"""Brute force for finite terms: every state, every conjugate, and the envelope by a dense linear program."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.optimize import linprog

from certimap.graph.compile import compile_model
from certimap.oracles.cuts import Box
from certimap.oracles.protocol import oracles_for


def oracle_of(model):
    """The graph and the only oracle of a model whose factors form one batch."""
    graph = compile_model(model)
    (oracle,) = oracles_for(graph)
    return graph, oracle


def root(graph):
    return Box(graph.lower.copy(), graph.upper.copy())


def states_of(oracle, i):
    """(states, width) one-hot points of the scope and their values, -inf included."""
    variables = oracle.batch.factors[i].variables()
    points = np.array([np.concatenate(parts) for parts in product(*(np.eye(len(v.states)) for v in variables))])
    return points, np.array([oracle.batch.factors[i].value(p) for p in points])


def envelope(oracle, i, x):
    """max sum p theta with marginals x; -inf where no distribution has these marginals."""
    points, values = states_of(oracle, i)
    finite = values > -np.inf
    solution = linprog(-values[finite], A_eq=points[finite].T, b_eq=x, method="highs")
    return -solution.fun if solution.success else -np.inf


def assert_valid(oracle, cuts):
    """Every cut holds at every state of its term, in real arithmetic (up to the error of evaluating it here)."""
    for i, u, h, local, feasibility in zip(cuts.term, cuts.u, cuts.h, cuts.local, cuts.feasibility, strict=True):
        points, values = states_of(oracle, i)
        assert not local
        assert np.isfinite(u).all() and np.isfinite(h)
        right = points @ u + h
        slack = 1e-13 * (1.0 + np.abs(u).sum() + abs(h))
        finite = values > -np.inf
        left = np.zeros(len(values)) if feasibility else values
        assert (left[finite] <= right[finite] + slack).all()


def random_marginals(oracle, graph, rng):
    """Columns whose groups are random points of simplices: fractional, with zeros, or whole."""
    y = np.zeros(graph.n_columns)
    for group in graph.groups:
        weights = rng.dirichlet(np.full(len(group), 0.7)) * (rng.random(len(group)) < 0.7)
        if weights.sum() == 0.0:
            weights[rng.integers(len(group))] = 1.0
        y[group] = weights / weights.sum()
    return y


def assert_separation_is_exact(oracle, graph, y, tolerance=1e-7):
    """At y with t far above, each term gets one valid cut that touches the envelope or cuts y off."""
    m = len(oracle.batch)
    scale = 1.0 + np.abs(oracle.upper(root(graph))).max()
    cuts = oracle.separate(y, np.full(m, 1e3 * scale), root(graph), tolerance)
    assert_valid(oracle, cuts)
    assert sorted(cuts.term.tolist()) == list(range(m))
    envelopes = np.array([envelope(oracle, i, y[oracle.scope[i]]) for i in range(m)])
    for i, u, h, feasibility in zip(cuts.term, cuts.u, cuts.h, cuts.feasibility, strict=True):
        right = u @ y[oracle.scope[i]] + h
        if feasibility:
            assert envelopes[i] == -np.inf
            assert right < -tolerance
        else:
            assert abs(right - envelopes[i]) <= 1e-6 * scale
    inside = envelopes > -np.inf
    met = oracle.separate(y, np.where(inside, envelopes, -1e3), root(graph), 1e-6 * scale)
    assert not set(met.term[~met.feasibility].tolist()) & set(np.flatnonzero(inside).tolist())


def assert_conjugates_are_certified(oracle, graph, rng):
    """Conjugates bound the enumerated maximum from above, tightly, one by one and all at once."""
    u = 3.0 * rng.normal(size=oracle.scope.shape)
    together = oracle.conjugates(u)
    for i in range(len(oracle.batch)):
        points, values = states_of(oracle, i)
        exact = (values - points @ u[i]).max()
        h, x = oracle.conjugate(i, u[i], root(graph))
        assert exact - 1e-12 <= h <= exact + 1e-9
        assert abs(together[i] - h) <= 1e-12
        assert abs(oracle.batch.factors[i].value(x) - x @ u[i] - exact) <= 1e-9


def assert_upper_bounds_boxes(oracle, graph, rng):
    """The upper bound over a random box is the largest value among the states that the box leaves."""
    box = root(graph)
    for group in graph.groups:
        closed = rng.random(len(group)) < 0.4
        closed[rng.integers(len(group))] = False
        box.upper[group[closed]] = 0.0
        if rng.random() < 0.3:
            box.lower[rng.choice(group[~closed])] = 1.0
    upper = oracle.upper(box)
    for i in range(len(oracle.batch)):
        points, values = states_of(oracle, i)
        lower_i, upper_i = box.part(oracle.scope[i])
        inside = ((points >= lower_i) & (points <= upper_i)).all(axis=1)
        assert upper[i] == values[inside].max(initial=-np.inf)
