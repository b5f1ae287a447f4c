"""Safe bounds: valid for any multipliers, and as good as the linear program for the right ones."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.helpers import assert_solved, joint_states
from tests.models import discrete_model

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model, fix, linear, soft, table
from certimap.engines.bounds import Multipliers, clean, combination_bound, leaf_bound, normalise, proves_empty
from certimap.engines.cut_master import CutMaster
from certimap.engines.cut_pool import CutPool
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box, oracles_for
from certimap.solver import solve

SEEDS = range(25)


def master_with_cuts(seed):
    """A random discrete model, its master with cuts made at random points, and every point with its value."""
    rng = np.random.default_rng(seed)
    model = discrete_model(rng, private=False, max_states=600)
    graph = compile_model(model)
    master = CutMaster(graph, oracles_for(graph))
    for _ in range(6):
        y = np.zeros(graph.n_columns)
        for group in graph.groups:
            y[group] = rng.dirichlet(np.ones(len(group)))
        master.separate(y, np.full(len(graph.blocks), 100.0), 1e-6)
    states = list(joint_states(model))
    points = np.array([graph.encode(s) for s in states])
    return rng, master, points, np.array([model.value(s) for s in states])


def random_multipliers(rng, graph, pool):
    keep = np.flatnonzero((rng.random(len(pool)) < 0.5) | (np.arange(len(pool)) < len(graph.blocks)))
    rows = np.flatnonzero(rng.random(len(graph.rows)) < 0.7)
    weights = rng.exponential(1.0, len(keep)) + 0.6 * (keep < len(graph.blocks))
    return clean(graph, keep, weights, rows, 2.0 * rng.normal(size=len(rows)))


def random_box(rng, graph, points):
    """The root box, or one around a few points."""
    if rng.random() < 0.3:
        return Box(graph.lower, graph.upper)
    chosen = points[rng.choice(len(points), 3)]
    return Box(np.maximum(graph.lower, chosen.min(0)), np.minimum(graph.upper, chosen.max(0)))


def best_inside(points, values, box):
    inside = ((points >= box.lower) & (points <= box.upper)).all(axis=1)
    return values[inside].max(initial=-math.inf)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_multipliers_bound_every_point_of_the_box(seed):
    rng, master, points, values = master_with_cuts(seed)
    graph, pool = master.graph, master.pool
    for _ in range(20):
        m, box = random_multipliers(rng, graph, pool), random_box(rng, graph, points)
        assert leaf_bound(graph, pool, m, box) >= best_inside(points, values, box)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_box_is_called_empty_only_if_it_is(seed):
    rng, master, points, values = master_with_cuts(seed)
    graph, pool = master.graph, master.pool
    for _ in range(30):
        m, box = random_multipliers(rng, graph, pool), random_box(rng, graph, points)
        if proves_empty(graph, pool, m, box):
            assert best_inside(points, values, box) == -math.inf


@pytest.mark.parametrize("seed", SEEDS)
def test_the_multipliers_of_the_master_attain_its_value(seed):
    _, master, _, values = master_with_cuts(seed)
    relaxation = master.solve()
    reference = relaxed_master(master)
    if relaxation.empty:
        assert reference == -math.inf
        assert values.max() == -math.inf
    else:
        assert relaxation.bound == pytest.approx(reference, abs=1e-6 * max(1.0, abs(reference)))
        assert relaxation.bound >= max(values.max(), reference - 1e-9)


def relaxed_master(master):
    """The value of the relaxed master by another LP solver."""
    graph, pool = master.graph, master.pool
    n, blocks = graph.n_columns, len(graph.blocks)
    A, b = [], []
    for k in range(len(pool)):
        record = pool.record(k)
        row = np.zeros(n + blocks)
        row[record.columns] -= record.u
        row[n + record.block] = 0.0 if record.feasibility else 1.0
        A.append(row)
        b.append(record.h)
    matrix = np.hstack([graph.rows.matrix.toarray(), np.zeros((len(graph.rows), blocks))])
    for row, low, high in zip(matrix, graph.rows.lower, graph.rows.upper, strict=True):
        for sign, side in ((1.0, high), (-1.0, -low)):
            if math.isfinite(side):
                A.append(sign * row)
                b.append(side)
    bounds = [*zip(graph.lower, graph.upper, strict=True), *[(None, None)] * blocks]
    found = linprog(-np.concatenate([graph.cost, np.ones(blocks)]), A_ub=np.array(A), b_ub=b, bounds=bounds)
    return graph.offset - found.fun if found.status == 0 else -math.inf


def small_graph():
    m = Model()
    z = m.categorical("z", 2, shape=2)
    m.add(table(z, [[1.0, 0.0], [0.0, 2.0]]), linear([(z[0].is_(0), 0.5)]))
    m.constrain(linear([(z[0].is_(1), 1.0), (z[1].is_(1), 1.0)]) <= 1)
    graph = compile_model(m)
    return graph, CutMaster(graph, oracles_for(graph))


def test_a_block_without_weight_gives_no_bound():
    graph, master = small_graph()
    none, zero = np.zeros(0, dtype=np.int64), np.zeros(0)
    empty = Multipliers(none, zero, none, zero)
    assert normalise(master.pool, 1, empty) is None
    assert leaf_bound(graph, master.pool, empty, master.box) == math.inf


def test_weights_of_a_block_are_rescaled_to_one():
    graph, master = small_graph()
    rows = np.zeros(0, dtype=np.int64)
    for weight in (0.7, 1.0, 40.0):
        m = Multipliers(np.zeros(1, dtype=np.int64), np.array([weight]), rows, np.zeros(0))
        assert normalise(master.pool, 1, m).weights == pytest.approx([1.0])
        assert leaf_bound(graph, master.pool, m, master.box) == pytest.approx(2.5, abs=1e-9)


def test_rows_contribute_the_side_that_their_sign_selects():
    graph, master = small_graph()
    (row,) = np.flatnonzero(graph.rows.owner == 0)
    cut = np.zeros(1, dtype=np.int64)
    m = Multipliers(cut, np.ones(1), np.array([row]), np.array([0.25]))
    # reduced costs 0.5, -0.25, 0, -0.25; the row gives 0.25, the cut h = 2
    assert leaf_bound(graph, master.pool, m, master.box) == pytest.approx(2.75, abs=1e-9)
    wrong = clean(graph, cut, np.ones(1), np.array([row]), np.array([-0.25]))
    assert len(wrong.rows) == 0, "the row has no lower side"


def nearly_two(m):
    """Both values 1 break the row by half of the tolerance."""
    z = m.binary("z", shape=2)
    m.add(table([z[0], z[1]], [[0.0, 1.0], [2.0, 5e9]]), linear([], -5e9))
    m.constrain(z[0] + z[1] <= 2.0 - 5e-10)
    return {"z": [1, 1]}


def nearly_two_softly(m):
    z = m.binary("z", shape=2)
    m.add(table([z[0], z[1]], [[0.0, 1.0], [2.0, 2.5]]), soft(z[0] + z[1] <= 2.0 - 5e-10, 3.0))
    return {"z": [1, 1]}


def nearly_fixed(m):
    z = m.binary("z", shape=2)
    m.add(linear([(z[0], -1.0)]))
    m.constrain(z[0] >= 1e-10)
    return {"z": [0, 0]}


def decimals(m):
    """0.1 + 0.2 is not 0.3 in binary."""
    z = m.binary("z", shape=3)
    m.add(linear([(v, 1.0) for v in z]))
    m.constrain(0.1 * z[0] + 0.2 * z[1] == 0.3, 0.3 * z[2] - 0.1 * z[0] - 0.2 * z[1] == 0)
    return {"z": [1, 1, 1]}


def a_real_at_its_limit(m):
    x = m.real("x", 0.0, 1.0)
    m.add(linear([(x, 1e6)], -5e5))
    m.constrain(x <= 0.5)
    return {"x": 0.5 + 9e-10}


def a_simplex_at_its_limit(m):
    p = m.simplex("p", 3)
    m.add(linear([(p[0], 1e6), (p[2], 1e6)], -1e6))
    return {"p": [1.0, 0.0, 9e-10]}


@pytest.mark.parametrize("algorithm", ["auto", "branch-and-cut", "gbd"])
@pytest.mark.parametrize(
    "build",
    [nearly_two, nearly_two_softly, nearly_fixed, decimals, a_real_at_its_limit, a_simplex_at_its_limit],
)
def test_points_within_the_tolerance_of_rows_are_covered(build, algorithm):
    m = Model()
    point = build(m)
    value = m.value(point)
    assert value > -math.inf, "it counts as feasible"
    result = solve(m, algorithm=algorithm, max_nodes=200)
    report = assert_solved(m, result)
    assert report.upper_bound >= value
    assert result.upper_bound >= value - 1e-9 * max(1.0, abs(value))


def test_the_margin_covers_rounding():
    """A combination that cancels exactly in real arithmetic must not fall below the true value in float64."""
    m = Model()
    z = m.categorical("z", 2, shape=3)
    m.add(linear([(v.is_(1), 1e15) for v in z]), linear([(v.is_(1), 0.3) for v in z]))
    m.constrain(fix(z, 1))
    graph = compile_model(m)
    none, zero = np.zeros(0, dtype=np.int64), np.zeros(0)
    nothing = Multipliers(none, zero, none, zero)
    bound = combination_bound(graph, CutPool(), nothing, Box(graph.lower, graph.upper), objective=True)
    assert bound >= m.value({"z": [1, 1, 1]})


def test_a_program_that_its_time_limit_stops_still_gives_a_bound():
    rng = np.random.default_rng(0)
    m = Model()
    z = m.categorical("z", 4, shape=(12, 12))
    m.add([table(v, rng.normal(size=4)) for v in z.ravel()])
    for a, b in ((z[1:], z[:-1]), (z[:, 1:], z[:, :-1])):
        m.add([table([x, y], rng.normal(size=(4, 4))) for x, y in zip(a.ravel(), b.ravel(), strict=True)])
    graph = compile_model(m)
    master = CutMaster(graph, oracles_for(graph))
    stopped = master.solve(time_limit=1e-9)
    assert stopped.y is None, "the limit must have stopped it"
    relaxed = master.solve()
    assert relaxed.y is not None
    assert stopped.bound >= relaxed.bound - 1e-6
