"""The compiled graph says the same as the model: at every point, columns, rows and blocks give its value."""

import itertools
import math

import numpy as np
import pytest
from tests.helpers import joint_states
from tests.models import discrete_model

from certimap import (
    Block,
    Model,
    all_of,
    at_least,
    at_most,
    cannot_link,
    exactly,
    fix,
    gaussian,
    implies,
    linear,
    must_link,
    parity,
    potts,
    ridge,
    soft,
    table,
)
from certimap.graph.compile import compile_model, with_blocks
from certimap.graph.graph import nearest_matrix, nearest_simplex
from certimap.model.domains import PositiveDefinite, Simplex

INF = math.inf


def graph_value(graph, y):
    """offset + cost.y + blocks at the columns y, -inf where a bound or row is violated."""
    activity = graph.rows.matrix @ y
    inside = (y >= graph.lower - 1e-9).all() and (y <= graph.upper + 1e-9).all()
    if not inside or (activity < graph.rows.lower - 1e-9).any() or (activity > graph.rows.upper + 1e-9).any():
        return -INF
    terms = [f.value(y[s]) for b in graph.batches for f, s in zip(b.factors, b.scope, strict=True)]
    return graph.offset + float(graph.cost @ y) + math.fsum(terms) if -INF not in terms else -INF


@pytest.mark.parametrize("seed", range(40))
def test_columns_rows_and_blocks_give_the_models_value_everywhere(seed):
    m = discrete_model(np.random.default_rng(seed), private=False)
    graph = compile_model(m)
    for s in joint_states(m):
        y = graph.encode(s)
        assert graph.decode(y).keys() == m.shapes.keys()
        assert m.flatten(graph.decode(y)) == s
        assert graph_value(graph, y) == pytest.approx(m.value(s), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_private_variables_are_maximised_out(seed):
    m = discrete_model(np.random.default_rng(1000 + seed), private=True)
    graph = compile_model(m)
    hidden = {name for names in graph.private for name in names}
    assert hidden
    best = {}
    for s in joint_states(m):
        rest = tuple(v for n, v in s.items() if n not in hidden)
        seen = best.setdefault(rest, [-INF, -INF])
        seen[0] = max(seen[0], m.value(s))
        seen[1] = max(seen[1], graph_value(graph, graph.encode(s)))
    for model_value, compiled in best.values():
        assert compiled == pytest.approx(model_value, abs=1e-9)


def test_integers_are_one_hot_coded_only_on_demand():
    m = Model()
    i, j, k = m.integer("i", 0, 5), m.integer("j", 0, 5), m.integer("k", 0, 5)
    m.add(ridge(i, gaussian(2.0)), table(j, np.zeros(6)))
    m.constrain(k + i <= 7)
    graph = compile_model(m)
    assert len(graph.groups) == 1
    assert {a.variable.name for a in graph.column_of if a.is_indicator} == {"j"}
    assert graph.n_columns == 3 + 6
    for value in range(6):
        y = graph.encode({"i": 0, "j": value, "k": 0})
        assert graph_value(graph, y) > -INF


def test_huge_integers_keep_one_column():
    m = Model()
    m.add(ridge(m.integer("i", 0, 10**6), gaussian(2.0)))
    assert compile_model(m).n_columns == 1


def test_binaries_and_categoricals_are_groups_that_sum_to_one():
    m = Model()
    m.binary("b")
    m.categorical("c", 3)
    graph = compile_model(m)
    assert [len(g) for g in graph.groups] == [2, 3]
    assert graph.group_of.tolist() == [0, 0, 1, 1, 1]
    assert graph.rows.owner.tolist() == [-1, -1]
    assert graph.rows.lower.tolist() == graph.rows.upper.tolist() == [1.0, 1.0]


def test_unary_tables_are_costs_and_their_exclusions_bounds():
    m = Model()
    z = m.categorical("z", 3)
    m.add(table(z, [0.5, -INF, 2.0]), table(z, [1.0, 1.0, 0.0]))
    graph = compile_model(m)
    assert graph.cost.tolist() == [1.5, 1.0, 2.0]
    assert graph.upper.tolist() == [1.0, 0.0, 1.0]
    assert graph.blocks == ()


def test_a_unary_table_in_a_users_block_stays_there():
    m = Model()
    z = m.categorical("z", 3)
    m.add(Block([table(z, [0.5, -1.0, 2.0])]))
    graph = compile_model(m)
    assert graph.blocks == ((0,),)
    assert not graph.cost.any()


def test_fix_becomes_a_bound_and_a_contradiction_stays_visible():
    m = Model()
    z, b = m.categorical("z", 3), m.binary("b")
    m.constrain(fix(z, 1), fix(b, 0))
    graph = compile_model(m)
    assert graph.lower.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert (graph.rows.owner == -1).all()
    m.constrain(fix(z, 2))
    again = compile_model(m)
    assert [graph_value(again, again.encode({"z": s, "b": 0})) for s in range(3)] == [-INF] * 3


def test_rows_name_the_constraint_they_come_from():
    m = Model()
    z = m.categorical("z", 2, shape=2)
    m.constrain(must_link(z[0], z[1]), at_most(1, z))
    assert compile_model(m).rows.owner.tolist() == [-1, -1, 0, 0, 1]


SOFT = [
    lambda v: must_link(v["a"], v["b"]),
    lambda v: must_link(v["i"], v["j"]),
    lambda v: must_link([v["a"], v["x"]], [v["b"], v["y"]]),
    lambda v: must_link(v["a"], v["a"]),
    lambda v: cannot_link(v["a"], v["b"]),
    lambda v: cannot_link(v["a"], v["a"]),
    lambda v: fix(v["i"], 1),
    lambda v: fix([v["a"], v["x"]], [2, 1]),
    lambda v: implies(v["x"], v["a"].is_(1)),
    lambda v: at_least(2, [v["a"], v["b"], v["x"]]),
    lambda v: at_least(9, [v["a"], v["b"], v["x"]]),
    lambda v: exactly(1, [v["x"], v["y"]]),
    lambda v: all_of(v["x"], [v["y"], v["a"].is_(0)]),
    lambda v: linear({v["i"]: 1.5, v["j"]: -0.5}) <= 0.75,
    lambda v: v["i"] - v["j"] >= -1,
]


@pytest.mark.parametrize("make", SOFT)
def test_soft_constraints_cost_their_weight_exactly_where_violated(make):
    m = Model()
    v = {
        "a": m.categorical("a", 3),
        "b": m.categorical("b", 3),
        "i": m.integer("i", -1, 2),
        "j": m.integer("j", -1, 2),
        "x": m.binary("x"),
        "y": m.binary("y"),
    }
    m.add(soft(make(v), 1.75))
    graph = compile_model(m)
    (violated,) = graph.auxiliary or (None,)
    for s in itertools.islice(joint_states(m), 0, None, 3):
        y = graph.encode(s)
        assert graph_value(graph, y) == pytest.approx(m.value(s), abs=1e-12)
        if violated is not None and y[violated] == 1.0:
            y[violated] = 0.0
            assert graph_value(graph, y) == -INF, "a violated constraint must not be free"


def test_soft_links_of_reals_compile():
    m = Model()
    x, y = m.real("x", 0.0, 1.0), m.real("y", -1.0, 2.0)
    m.add(soft(must_link(x, y), 1.0))
    graph = compile_model(m)
    for point in ({"x": 0.0, "y": -1.0}, {"x": 0.0, "y": 2.0}, {"x": 0.5, "y": 0.5}):
        assert graph_value(graph, graph.encode(point)) == pytest.approx(m.value(point))


def test_big_m_is_no_larger_than_the_row_needs():
    m = Model()
    i, j = m.integer("i", -2, 5), m.integer("j", 0, 3)
    m.add(soft(2 * i - j <= 4, 1.0))
    graph = compile_model(m)
    (violated,) = graph.auxiliary
    (row,) = np.flatnonzero(graph.rows.matrix.toarray()[:, violated])
    assert graph.rows.matrix.toarray()[row, violated] == 4 - 10


def test_factors_of_one_shape_share_a_batch():
    m = Model()
    z = m.categorical("z", 3, shape=4)
    m.add(potts(z[:-1], z[1:]), table([z[0], z[3]], np.eye(3)), table([z[1], z[3]], np.eye(3)))
    graph = compile_model(m)
    assert sorted((b.kind, len(b)) for b in graph.batches) == [("potts", 3), ("table", 2)]
    assert sorted(np.concatenate([b.blocks for b in graph.batches]).tolist()) == list(range(5))


def test_blocks_can_be_regrouped_without_touching_columns():
    m = Model()
    z = m.categorical("z", 2, shape=3)
    m.add(potts(z[:-1], z[1:]))
    graph = compile_model(m)
    coarse = with_blocks(graph, [(0, 1)])
    assert coarse.lower is graph.lower and coarse.rows is graph.rows
    assert [b.kind for b in coarse.batches] == ["table"]
    for s in joint_states(m):
        assert graph_value(coarse, coarse.encode(s)) == graph_value(graph, graph.encode(s))


def test_compiled_arrays_are_read_only():
    m = discrete_model(np.random.default_rng(3), private=False)
    graph = compile_model(m)
    arrays = [graph.lower, graph.upper, graph.cost, graph.integer, graph.group_of, *graph.groups]
    arrays += [b.scope for b in graph.batches] + [a for b in graph.batches for a in b.data.values()]
    assert not any(a.flags.writeable for a in arrays)


def test_compiling_twice_gives_equal_graphs():
    m = discrete_model(np.random.default_rng(4), private=True)
    one, two = compile_model(m), compile_model(m)
    assert np.array_equal(one.cost, two.cost)
    assert (one.rows.matrix != two.rows.matrix).nnz == 0
    assert (one.blocks, one.private, list(one.column_of)) == (two.blocks, two.private, list(two.column_of))


def test_parity_and_continuous_variables_keep_their_scope():
    m = Model()
    b, p, q = m.binary("b", shape=3), m.simplex("p", 3, 0.1), m.positive_definite("q", 2, 0.5, 2.0)
    m.add(parity(b), linear([(p[0], 1.0), (q[1, 0], 2.0)]))
    graph = compile_model(m)
    assert [f.kind for f in graph.factors] == ["parity", "spectral"]
    point = {"b": [1, 0, 0], "p": [0.2, 0.3, 0.5], "q": [[1.0, 0.25], [0.25, 1.0]]}
    y = graph.encode(point)
    assert graph_value(graph, y) == pytest.approx(m.value(point)) == pytest.approx(0.7)
    decoded = graph.decode(y)
    assert np.allclose(decoded["p"], point["p"], atol=1e-15)
    assert np.allclose(decoded["q"], point["q"], atol=1e-15)


def test_decoding_gives_points_of_the_domains():
    rng = np.random.default_rng(0)
    for _ in range(50):
        simplex, cone = Simplex(4, 0.05), PositiveDefinite(3, 0.5, 2.0)
        assert simplex.contains(nearest_simplex(rng.normal(size=4), simplex))
        assert cone.contains(nearest_matrix(3.0 * rng.normal(size=6), cone))
    assert simplex.contains(nearest_simplex(np.full(4, -1.0), simplex))
