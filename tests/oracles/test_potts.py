"""The closed-form Potts oracle against enumeration and dense envelopes."""

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
)

from certimap import Model, potts


def model_of(states, weights):
    model = Model()
    for i, w in enumerate(weights):
        model.add(potts(model.categorical(f"a{i}", states), model.categorical(f"b{i}", states), w))
    return oracle_of(model)


@pytest.mark.parametrize("states", [1, 2, 3, 6])
def test_cuts_are_valid_and_touch_the_envelope(states):
    rng = np.random.default_rng(states)
    graph, oracle = model_of(states, [2.5, -1.5, 0.3, -40.0, 0.0])
    for _ in range(8):
        assert_separation_is_exact(oracle, graph, random_marginals(oracle, graph, rng))


@pytest.mark.parametrize("states", [1, 2, 3, 6])
def test_values_conjugates_and_box_bounds(states):
    rng = np.random.default_rng(states)
    graph, oracle = model_of(states, [2.5, -1.5, 0.0])
    for _ in range(20):
        assert_conjugates_are_certified(oracle, graph, rng)
        assert_upper_bounds_boxes(oracle, graph, rng)
        y = np.zeros(graph.n_columns)
        for group in graph.groups:
            y[rng.choice(group)] = 1.0
        exact = [f.value(y[s]) for f, s in zip(oracle.batch.factors, oracle.scope, strict=True)]
        assert oracle.value(y).tolist() == exact
    assert_valid(oracle, oracle.proposals(root(graph)))


def test_a_triangle_of_penalties_is_not_closed_by_its_edges():
    graph, oracle = model_of(2, [-1.0])
    assert len(oracle.separate(np.full(4, 0.5), np.zeros(1), root(graph), 1e-9)) == 0
