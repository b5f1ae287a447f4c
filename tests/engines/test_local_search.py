"""Local search proposes feasible points of good value; nothing it says is trusted, so only quality can suffer."""

import math

import numpy as np
import pytest
from tests.helpers import enumerate_map

from certimap import Model, at_most, cannot_link, fix, gaussian, implies, must_link, potts, ridge, table
from certimap.engines.local_search import discrete_search
from certimap.graph.compile import compile_model


def searchable(seeds):
    """Random models that the search handles: categorical, with exclusions and constraints."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        model = Model()
        z = model.categorical("z", 3, shape=6)
        model.add([table(v, rng.normal(size=3)) for v in z], potts(z[0], z[3], float(rng.normal())))
        for _ in range(6):
            values = 2.0 * rng.normal(size=(3, 3))
            values[rng.random((3, 3)) < 0.15] = -np.inf
            model.add(table(rng.choice(z, 2, replace=False), values))
        constraints = [
            fix(z[4], 1),
            must_link(z[0], z[1]),
            cannot_link(z[1], z[2]),
            at_most(2, z, value=2),
            implies(z[3].is_(0), z[5].is_(1)),
        ]
        model.constrain([c for c in constraints if rng.random() < 0.4])
        graph = compile_model(model)
        search = discrete_search(graph)
        assert search is not None
        yield seed, model, graph, search


def test_proposed_points_are_feasible_and_mostly_optimal():
    found, optimal, feasible = 0, 0, 0
    for seed, model, graph, search in searchable(range(40)):
        optimum, _ = enumerate_map(model)
        point = search.improve(np.zeros(graph.n_columns), 200, np.random.default_rng(seed))
        feasible += optimum > -math.inf
        if point is None:
            continue
        assignment = graph.decode(point)
        assert model.violated(assignment) == []
        assert math.isfinite(model.value(assignment))
        found += 1
        optimal += model.value(assignment) >= optimum - 1e-9
    assert feasible >= 30
    assert found >= 0.9 * feasible
    assert optimal >= 0.8 * found


def test_improving_never_makes_a_feasible_point_worse():
    checked = 0
    for seed, model, graph, search in searchable(range(20)):
        rng = np.random.default_rng(seed)
        for _ in range(5):
            start = np.zeros(graph.n_columns)
            for group in graph.groups:
                start[rng.choice(group)] = 1.0
            value = model.value(graph.decode(start))
            if value == -math.inf:
                continue
            better = search.improve(start, 0, rng)
            assert better is not None
            assert model.value(graph.decode(better)) >= value - 1e-9
            checked += 1
    assert checked >= 10


def test_the_same_stream_of_random_numbers_gives_the_same_point():
    for seed, _, graph, search in searchable(range(5)):
        points = [search.improve(np.zeros(graph.n_columns), 50, np.random.default_rng(seed)) for _ in range(2)]
        assert (points[0] is None) == (points[1] is None)
        assert points[0] is None or np.array_equal(points[0], points[1])


def test_no_feasible_point_is_reported_as_none():
    m = Model()
    z = m.categorical("z", 2, shape=2)
    m.add(table(z, [[-np.inf, 0.0], [-np.inf, -np.inf]]), table(z[0], [-np.inf, 0.0]))
    graph = compile_model(m)
    assert discrete_search(graph).improve(np.zeros(graph.n_columns), 100, np.random.default_rng(0)) is None


def test_states_and_points_are_inverse():
    m = Model()
    z = m.categorical("z", 3, shape=4)
    m.add(potts(z[:-1], z[1:]))
    graph = compile_model(m)
    search = discrete_search(graph)
    x = np.array([2, 0, 1, 1])
    assert np.array_equal(search.states(search.point(x)), x)
    assert np.array_equal(search.point(x), graph.encode({"z": x}))


@pytest.mark.parametrize("kind", ["real", "integer", "nothing"])
def test_models_with_other_parts_have_no_discrete_search(kind):
    m = Model()
    if kind == "real":
        m.binary("b")
        m.add(ridge(m.real("x", 0.0, 1.0), gaussian(0.0)))
    elif kind == "integer":
        m.add(ridge(m.integer("i", 0, 9), gaussian(0.0)))
    assert discrete_search(compile_model(m)) is None


def test_the_search_stops_at_its_work_limit_with_a_point():
    rng = np.random.default_rng(3)
    model = Model()
    x = model.categorical("x", 4, shape=30)
    model.add([table([x[i], x[j]], rng.normal(size=(4, 4))) for i in range(30) for j in range(i)])
    graph = compile_model(model)
    search = discrete_search(graph)
    start = np.zeros(graph.n_columns)
    points = [search.improve(start, kicks, np.random.default_rng(0)) for kicks in (0, 50, 1_000_000)]
    values = [model.value(graph.decode(point)) for point in points]
    assert values[0] <= values[1] <= values[2]  # a million kicks would take minutes
