"""Table oracles against enumeration and dense envelopes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.finite import (
    assert_conjugates_are_certified,
    assert_separation_is_exact,
    assert_upper_bounds_boxes,
    assert_valid,
    oracle_of,
    random_marginals,
    root,
    states_of,
)

from certimap import Block, Model, potts, table
from certimap.graph.compile import compile_model
from certimap.oracles.joint_tables import JointTables
from certimap.oracles.protocol import oracles_for
from certimap.oracles.tables import PairTables

SHAPES = [(2, 2), (3, 4), (1, 4), (2, 3, 2), (2, 2, 2, 3)]


def model_of(shape, seed, excluded=0.0, terms=4):
    rng = np.random.default_rng(seed)
    model = Model()
    for _ in range(terms):
        values = rng.normal(size=shape) * rng.choice([1.0, 30.0])
        values[rng.random(shape) < excluded] = -np.inf
        values.flat[rng.integers(values.size)] = rng.normal()
        variables = [model.categorical(f"x{len(model.variables)}", k) for k in shape]
        model.add(table(variables, values))
    return model, rng


@pytest.mark.parametrize("excluded", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("shape", SHAPES)
def test_cuts_are_valid_and_touch_the_envelope(shape, excluded):
    for seed in range(3):
        model, rng = model_of(shape, seed, excluded)
        graph, oracle = oracle_of(model)
        for _ in range(2):
            assert_separation_is_exact(oracle, graph, random_marginals(oracle, graph, rng))


@pytest.mark.parametrize("excluded", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_cuts_at_whole_points(shape, excluded):
    model, rng = model_of(shape, 11, excluded)
    graph, oracle = oracle_of(model)
    for _ in range(4):
        y = np.zeros(graph.n_columns)
        for group in graph.groups:
            y[rng.choice(group)] = 1.0
        assert_separation_is_exact(oracle, graph, y)
        exact = np.array([f.value(y[s]) for f, s in zip(oracle.batch.factors, oracle.scope, strict=True)])
        assert (oracle.value(y) == exact).all()
        assert (oracle.value(y + 1e-8) == exact).all()


@pytest.mark.parametrize("excluded", [0.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_conjugates_and_box_bounds(shape, excluded):
    model, rng = model_of(shape, 5, excluded)
    graph, oracle = oracle_of(model)
    for _ in range(5):
        assert_conjugates_are_certified(oracle, graph, rng)
        assert_upper_bounds_boxes(oracle, graph, rng)
    assert_valid(oracle, oracle.proposals(root(graph)))


def test_no_cut_where_the_estimate_is_met():
    model, rng = model_of((3, 3), 2)
    graph, oracle = oracle_of(model)
    y = random_marginals(oracle, graph, rng)
    assert len(oracle.separate(y, oracle.value(y), root(graph), 1e-9)) == 0


def test_empty_box_has_no_value():
    model = Model()
    a, b = model.categorical("a", 2), model.categorical("b", 2)
    model.add(table([a, b], [[0.0, -np.inf], [-np.inf, 0.0]]))
    graph, oracle = oracle_of(model)
    box = root(graph)
    box.upper[[0, 3]] = 0.0
    assert oracle.upper(box).tolist() == [-np.inf]


def test_sparse_tables_list_their_states():
    rng = np.random.default_rng(0)
    model = Model()
    for i in range(2):
        variables = [model.categorical(f"x{i}{d}", 9) for d in range(4)]
        states = {tuple(rng.integers(9, size=4).tolist()): float(rng.normal()) for _ in range(40)}
        model.add(table(variables, states))
    graph = compile_model(model)
    for oracle in oracles_for(graph):
        assert isinstance(oracle, JointTables)
        assert oracle.batch.kind == "sparse_table"
        for _ in range(3):
            y = random_marginals(oracle, graph, rng)
            cuts = oracle.separate(y, np.full(len(oracle.batch), 100.0), root(graph), 1e-7)
            assert len(cuts) == len(oracle.batch)
            assert_valid(oracle, cuts)
        assert_conjugates_are_certified(oracle, graph, rng)


def test_merged_block_is_tighter_than_its_parts():
    def frustrated(blocks):
        model = Model()
        x = [model.binary(f"x{i}") for i in range(3)]
        factors = [potts(x[i], x[j], -1.0) for i, j in ((0, 1), (1, 2), (0, 2))]
        model.add(Block(factors) if blocks else factors)
        return oracle_of(model)

    half = np.full(6, 0.5)
    graph, merged = frustrated(True)
    assert isinstance(merged, JointTables)
    cut = merged.separate(half, np.zeros(1), root(graph), 1e-7)
    assert cut.u[0] @ half + cut.h[0] == pytest.approx(-1.0)
    graph, parts = frustrated(False)
    assert len(parts.separate(half, np.zeros(3), root(graph), 1e-7)) == 0


def test_unary_table_in_a_block_of_its_own():
    model = Model()
    a = model.categorical("a", 3)
    model.add(Block([table([a], [0.5, -np.inf, 2.0])]))
    graph, oracle = oracle_of(model)
    assert_separation_is_exact(oracle, graph, np.array([0.25, 0.0, 0.75]))
    assert_separation_is_exact(oracle, graph, np.array([0.25, 0.5, 0.25]))


def test_larger_pair_tables():
    model, rng = model_of((40, 30), 3, excluded=0.5, terms=2)
    graph, oracle = oracle_of(model)
    assert isinstance(oracle, PairTables)
    for _ in range(3):
        assert_separation_is_exact(oracle, graph, random_marginals(oracle, graph, rng))


def test_gaps_are_blamed_on_fractional_columns():
    model, _ = model_of((2, 2), 0, terms=1)
    _, oracle = oracle_of(model)
    scores = oracle.branch_scores(np.array([0.5, 0.5, 1.0, 0.0]), np.array([2.0]))
    assert scores.tolist() == [[1.0, 1.0, 0.0, 0.0]]
    assert states_of(oracle, 0)[0].shape == (4, 4)
