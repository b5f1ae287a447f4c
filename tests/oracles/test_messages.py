"""Message passing: valid cuts, whose joint bound lies between the optimum and the sum of the terms' maxima."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.oracles.finite import assert_valid

from certimap import Block, Model, gated, gaussian, potts, table
from certimap.graph.compile import compile_model
from certimap.graph.windows import coarsen
from certimap.oracles.messages import message_cuts
from certimap.oracles.protocol import oracles_for


def best_value(model):
    """The optimum by enumeration of a model of single categorical variables."""
    names, sizes = zip(*((v.name, len(v.states)) for v in model.variables.values()), strict=True)
    points = product(*(range(k) for k in sizes))
    return max(model.value(dict(zip(names, point, strict=True))) for point in points)


def master_bound(graph, oracles, cuts):
    """The master LP over exactly these cuts."""
    n = graph.n_columns
    left, right = [], []
    for b, c in cuts:
        scope, blocks = oracles[b].scope, oracles[b].batch.blocks
        for i, u, h, feasibility in zip(c.term, c.u, c.h, c.feasibility, strict=True):
            row = np.zeros(n + len(graph.blocks))
            row[scope[i]] -= u
            row[n + blocks[i]] = 0.0 if feasibility else 1.0
            left.append(row)
            right.append(h)
    rows = graph.rows.matrix.toarray()
    equal = np.flatnonzero(graph.rows.lower == graph.rows.upper)
    solution = linprog(
        -np.concatenate([graph.cost, np.ones(len(graph.blocks))]),
        A_ub=np.array(left),
        b_ub=right,
        A_eq=np.hstack([rows[equal], np.zeros((len(equal), len(graph.blocks)))]),
        b_eq=graph.rows.upper[equal],
        bounds=[*zip(graph.lower, graph.upper, strict=True), *[(None, None)] * len(graph.blocks)],
        method="highs",
    )
    return graph.offset - solution.fun


def random_model(rng, edges, sizes, excluded=0.0, with_triple=False):
    model = Model()
    x = [model.categorical(f"x{i}", k) for i, k in enumerate(sizes)]
    for v in x:
        model.add(table([v], rng.normal(size=len(v.states))))
    for i, j in edges:
        if sizes[i] == sizes[j] and rng.random() < 0.4:
            model.add(potts(x[i], x[j], float(rng.normal())))
            continue
        values = rng.normal(size=(sizes[i], sizes[j]))
        values[rng.random(values.shape) < excluded] = -np.inf
        values[0, 0] = 0.0
        model.add(table([x[i], x[j]], values))
    if with_triple:
        model.add(table([x[2], x[0], x[1]], rng.normal(size=(sizes[2], sizes[0], sizes[1]))))
    return model


def check(model):
    graph = compile_model(model)
    oracles = oracles_for(graph)
    result = message_cuts(graph, oracles)
    for b, cuts in result.cuts:
        assert_valid(oracles[b], cuts)
        assert cuts.term[~cuts.feasibility].tolist() == list(range(len(oracles[b].batch)))
    optimum = best_value(model)
    bound = master_bound(graph, oracles, result.cuts)
    naive = master_bound(graph, oracles, message_cuts(graph, oracles, sweeps=0).cuts)
    assert optimum - 1e-9 <= bound <= naive + 1e-9
    assert bound <= result.bound + 1e-9 * (1.0 + abs(result.bound))
    decoded = graph.decode(result.point)
    assert (graph.encode(decoded) == result.point).all()
    assert model.value(decoded) <= optimum + 1e-9
    return optimum, bound, model.value(decoded)


CYCLE = [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)]


@pytest.mark.parametrize("excluded", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_loopy_models(seed, excluded):
    check(random_model(np.random.default_rng(seed), CYCLE, (3, 2, 3, 3), excluded, with_triple=seed % 2 == 0))


@pytest.mark.parametrize("seed", range(8))
def test_trees_are_solved(seed):
    model = random_model(np.random.default_rng(seed), [(0, 1), (4, 1), (1, 2), (2, 3)], (3, 2, 3, 3, 2), 0.2)
    optimum, bound, decoded = check(model)
    assert bound == pytest.approx(optimum, abs=1e-6)
    assert decoded == pytest.approx(optimum, abs=1e-6)


def test_evidence_is_used():
    model = Model()
    a, b = model.categorical("a", 2), model.categorical("b", 2)
    model.add(table([a], [-np.inf, 0.0]), table([a, b], [[5.0, 5.0], [0.0, 1.0]]))
    _, bound, decoded = check(model)
    assert bound == pytest.approx(1.0)
    assert decoded == 1.0


def test_merged_blocks_give_tighter_bounds():
    def triangle(merge):
        model = Model()
        x = [model.binary(f"x{i}") for i in range(3)]
        edges = [potts(x[i], x[j], -1.0) for i, j in ((0, 1), (1, 2), (0, 2))]
        model.add(Block(edges) if merge else edges)
        return check(model)[1]

    assert triangle(merge=False) == pytest.approx(0.0)
    assert triangle(merge=True) == pytest.approx(-1.0)


@pytest.mark.parametrize("level", [1, 2])
def test_windows_keep_cuts_valid_and_tighten_the_bound(level):
    rng = np.random.default_rng(level)
    model = Model()
    x = model.categorical("x", 2, shape=(3, 3))
    model.add([potts(x[i, j], x[i, j + 1], float(rng.normal())) for i in range(3) for j in range(2)])
    model.add([potts(x[i, j], x[i + 1, j], float(rng.normal())) for i in range(2) for j in range(3)])
    graph = compile_model(model)
    edges = master_bound(graph, oracles_for(graph), message_cuts(graph, oracles_for(graph)).cuts)
    coarse = coarsen(graph, 512, level)
    oracles = oracles_for(coarse)
    result = message_cuts(coarse, oracles)
    for b, cuts in result.cuts:
        if oracles[b].scope.shape[1] <= 8:
            assert_valid(oracles[b], cuts)
    points = (np.array(p).reshape(3, 3) for p in product(range(2), repeat=9))
    optimum = max(model.value({"x": p}) for p in points)
    assert optimum - 1e-9 <= master_bound(coarse, oracles, result.cuts) <= edges + 1e-6


def test_other_factors_and_integers_are_left_alone():
    model = Model()
    z, n, w = model.binary("z"), model.integer("n", 2, 4), model.real("w", -1.0, 1.0)
    model.add(gated(z, w, gaussian(0.0)), table([z, n], np.array([[0.0, 1.0, 2.0], [3.0, 1.0, 0.0]])))
    graph = compile_model(model)
    pairs = [b for b in graph.batches if b.kind == "table"]
    only_tables = [o for o in oracles_for(graph) if o.batch.kind == "table"]
    result = message_cuts(graph, only_tables)
    assert [len(c) for _, c in result.cuts] == [len(pairs[0])]
    decoded = graph.decode(result.point)
    assert (decoded["z"], decoded["n"]) == (1, 2)
    assert result.point[graph.column_of[n.numeric()]] == 2.0


def test_no_finite_terms():
    model = Model()
    a = model.categorical("a", 3)
    model.add(table([a], [0.0, 2.0, 1.0]))
    graph = compile_model(model)
    result = message_cuts(graph, oracles_for(graph))
    assert result.cuts == []
    assert graph.decode(result.point) == {"a": 1}
