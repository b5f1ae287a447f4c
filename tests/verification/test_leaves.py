"""Leaf bounds: valid for any multipliers, and the same in float64 and in rationals."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.helpers import enumerate_map
from tests.verification.by_hand import certify

import certimap as cm
from certimap.certificate import CertificateError, CutRecord, LeafRecord
from certimap.graph.compile import compile_model
from certimap.verification.cuts import Box, CutTable
from certimap.verification.leaves import PARTS, LeafBounds, rounded_up
from certimap.verification.problem import restate


def setting(seed: int) -> tuple[cm.Model, LeafBounds, np.random.Generator]:
    """A small model with constraints, and random cuts: several per block, two of them feasibility cuts."""
    rng = np.random.default_rng(seed)
    model = cm.Model()
    x = model.categorical("x", 2, shape=4)
    holed = rng.normal(size=(2, 2))
    holed[1, 1] = -np.inf
    model.add(cm.table([x[0], x[1]], holed), cm.table([x[1], x[2]], 100.0 * rng.normal(size=(2, 2))))
    model.add(cm.potts(x[2], x[3], 0.5), [cm.table([v], rng.normal(size=2)) for v in x], cm.linear([], 0.1))
    model.constrain(cm.at_most(2, list(x)), cm.cannot_link(x[0], x[3]))
    graph = compile_model(model)
    scopes = {b: s for batch in graph.batches for b, s in zip(batch.blocks.tolist(), batch.scope, strict=True)}
    cuts = [CutRecord(b, s, 3.0 * rng.normal(size=4), math.nan) for b, s in scopes.items() for _ in range(3)]
    cuts += [CutRecord(0, scopes[0], rng.normal(size=4), math.nan, feasibility=True) for _ in range(2)]
    blank = certify(frustration_free())
    certificate = replace(blank, cuts=tuple(cuts), blocks=graph.blocks, private=graph.private)
    problem = restate(certificate, model)
    return model, LeafBounds(problem, CutTable(certificate.cuts, problem)), rng


def frustration_free() -> cm.Model:
    model = cm.Model()
    a, b = model.categorical("a", 2), model.categorical("b", 2)
    model.add(cm.table([a, b], np.eye(2)))
    return model


def random_leaf(bounds: LeafBounds, rng: np.random.Generator, scale: float = 1.0) -> LeafRecord:
    n, rows = len(bounds.cuts.records), len(bounds.problem.graph.rows)
    weights = scale * np.maximum(rng.normal(size=n), -0.1)
    return LeafRecord(0, False, np.arange(n), weights, np.arange(rows), scale * rng.normal(size=rows))


def whole(bounds: LeafBounds) -> Box:
    graph = bounds.problem.graph
    return Box(graph.lower, graph.upper)


@pytest.mark.parametrize("seed", range(20))
def test_any_multipliers_give_a_valid_bound(seed: int) -> None:
    model, bounds, rng = setting(seed)
    optimum, _ = enumerate_map(model)
    for scale in (1.0, 1e-6, 1e6):
        leaf = random_leaf(bounds, rng, scale)
        quick = bounds.upper_bound(leaf, whole(bounds), math.inf)
        exact = bounds.upper_bound(leaf, whole(bounds), -math.inf)
        assert quick >= exact >= optimum
        assert quick - exact <= 1e-10 * max(1.0, scale) * max(1.0, abs(exact))


@pytest.mark.parametrize("seed", range(5))
def test_points_of_the_box_are_not_proved_away(seed: int) -> None:
    _, bounds, rng = setting(seed)
    for _ in range(50):
        assert not bounds.is_empty(random_leaf(bounds, rng, 10.0), whole(bounds))


def test_weights_of_every_block_sum_to_one_exactly() -> None:
    _, bounds, rng = setting(0)
    cuts = np.arange(9)
    for _ in range(50):
        weights = np.exp(10.0 * rng.normal(size=9))
        repaired = bounds._repaired(cuts, weights)
        assert (repaired >= 0.0).all()
        for block in range(3):
            mine = bounds.cuts.block[cuts] == block
            assert sum(map(Fraction, repaired[mine].tolist())) == 1
            assert repaired[mine] == pytest.approx(weights[mine] / weights[mine].sum(), abs=4.0 / PARTS)


def test_huge_multipliers_stay_valid_without_warnings() -> None:
    model, bounds, rng = setting(1)
    optimum, _ = enumerate_map(model)
    assert bounds.upper_bound(random_leaf(bounds, rng, 1e300), whole(bounds), 0.0) >= optimum


def test_a_box_without_allowed_states_is_empty() -> None:
    _, bounds, _ = setting(0)
    lower = bounds.problem.graph.lower.copy()
    scope = bounds.problem.scopes[0]
    lower[scope[[1, 3]]] = 1.0  # the excluded state of the first table
    nothing = np.zeros(0, dtype=np.int64)
    leaf = LeafRecord(0, False, nothing, np.zeros(0), nothing, np.zeros(0))
    assert bounds.upper_bound(leaf, Box(lower, bounds.problem.graph.upper), 0.0) == -math.inf


def test_rounding_up() -> None:
    third = Fraction(1, 3)
    assert Fraction(rounded_up(third)) >= third
    assert rounded_up(Fraction(1, 2)) == 0.5


def test_positions_are_checked() -> None:
    _, bounds, rng = setting(0)
    leaf = random_leaf(bounds, rng)
    for change in ({"rows": leaf.rows + 1}, {"cuts": leaf.cuts.astype(float)}, {"row_weights": leaf.row_weights[1:]}):
        with pytest.raises(CertificateError, match="leaf 0"):
            bounds.upper_bound(replace(leaf, **change), whole(bounds), 0.0)
