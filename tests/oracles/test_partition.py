"""Partition blocks: pricing bounds, columns and lists against all subsets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certimap import Model, ModelError
from certimap.model.partition import OneDimensionalClusters, clusters_1d
from certimap.oracles.one_dimensional_clusters import OneDimensionalBlock
from certimap.oracles.partition import ColumnRules, Effort, PairRewards, block_class
from certimap.oracles.subsets import heaviest_set

EXACT = 1e-9
PLENTY = Effort(100_000)


def make_block(
    y: np.ndarray, variance: float = 1.0, pairs: tuple[tuple[int, int], ...] = (), weights: tuple[float, ...] = ()
) -> OneDimensionalBlock:
    z = Model().categorical("z", 3, shape=len(y))
    rewards = PairRewards(np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(weights, dtype=float))
    return OneDimensionalBlock(clusters_1d(z, y, variance), rewards)


def subsets(n: int) -> np.ndarray:
    return np.array(list(itertools.product([False, True], repeat=n)))


@st.composite
def pricing_problems(draw: st.DrawFn) -> tuple[OneDimensionalBlock, ColumnRules, np.ndarray]:
    """A block with soft links, rules and multipliers; points on a coarse grid, so that ties are common."""
    n = draw(st.integers(1, 8))
    item = st.integers(0, n - 1)
    pair = st.tuples(item, item)
    points = draw(st.lists(st.integers(-20, 20), min_size=n, max_size=n))
    distinct = draw(st.lists(pair.filter(lambda p: p[0] != p[1]), max_size=3)) if n > 1 else []
    weights = draw(st.lists(st.floats(-3, 3), min_size=len(distinct), max_size=len(distinct)))
    low = draw(st.integers(0, 3))
    rules = ColumnRules.of(n, draw(st.lists(pair, max_size=2)), draw(st.lists(pair, max_size=3)), low, low + n)
    multipliers = np.array(draw(st.lists(st.floats(-5, 5), min_size=n, max_size=n)))
    block = make_block(np.array(points) / 4.0, draw(st.sampled_from([0.3, 1.0, 2.0])), tuple(distinct), tuple(weights))
    return block, rules, multipliers


def reduced_values(block: OneDimensionalBlock, rules: ColumnRules, multipliers: np.ndarray) -> dict[bytes, float]:
    masks = subsets(len(multipliers))
    admitted = masks[rules.admits(masks)]
    return {m.tobytes(): block.value(m) - float(multipliers[m].sum()) for m in admitted}


@given(pricing_problems())
def test_certified_bound_is_the_best_subset(problem: tuple[OneDimensionalBlock, ColumnRules, np.ndarray]) -> None:
    block, rules, multipliers = problem
    best = max(reduced_values(block, rules, multipliers).values(), default=-math.inf)
    pricing = block.certified_bound(multipliers, rules, -math.inf, EXACT, PLENTY)
    assert best - 1e-12 * (1.0 + abs(best)) <= pricing.bound <= best + 2.0 * EXACT or best == pricing.bound
    assert rules.admits(pricing.columns).all()


@given(pricing_problems(), st.integers(1, 5), st.floats(-3, 3))
def test_bound_is_valid_whenever_it_stops(
    problem: tuple[OneDimensionalBlock, ColumnRules, np.ndarray], nodes: int, target: float
) -> None:
    block, rules, multipliers = problem
    best = max(reduced_values(block, rules, multipliers).values(), default=-math.inf)
    pricing = block.certified_bound(multipliers, rules, target, EXACT, Effort(nodes))
    assert pricing.bound >= best - 1e-12 * (1.0 + abs(best))


@given(pricing_problems(), st.floats(0.01, 3.0))
def test_enumeration_lists_exactly_the_columns_above(
    problem: tuple[OneDimensionalBlock, ColumnRules, np.ndarray], depth: float
) -> None:
    block, rules, multipliers = problem
    values = {m: v for m, v in reduced_values(block, rules, multipliers).items() if any(m)}
    threshold = max(values.values(), default=0.0) - depth
    listed = block.enumerate_columns(multipliers, rules, math.inf, threshold, 1000, PLENTY)
    assert listed is not None
    found = {m.tobytes() for m in listed}
    assert found >= {m for m, v in values.items() if v > threshold}
    assert found <= {m for m, v in values.items() if v > threshold - 1e-6}


@given(pricing_problems(), st.integers(0, 99))
def test_heuristic_columns_are_admissible(
    problem: tuple[OneDimensionalBlock, ColumnRules, np.ndarray], seed: int
) -> None:
    block, rules, multipliers = problem
    columns = block.heuristic_columns(
        multipliers, rules, np.random.default_rng(seed), np.zeros((0, len(multipliers)), dtype=bool)
    )
    assert rules.admits(columns).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_bound_holds_for_far_points_and_near_duplicates(scale: float) -> None:
    rng = np.random.default_rng(0)
    y = scale * np.concatenate([1.0 + 1e-9 * rng.normal(size=5), rng.normal(size=4), [1e4, -1e4]])
    block, rules = make_block(y, variance=scale**2), ColumnRules.of(11, [(0, 5)], [(1, 9)], 0, 11)
    for _ in range(20):
        multipliers = rng.normal(size=11)
        best = max(reduced_values(block, rules, multipliers).values())
        bound = block.certified_bound(multipliers, rules, -math.inf, EXACT, PLENTY).bound
        assert best - 1e-12 * (1.0 + abs(best)) <= bound <= best + 1e-7 * (1.0 + abs(best))


def test_enumeration_gives_up_beyond_its_limit() -> None:
    block = make_block(np.zeros(12))
    assert block.enumerate_columns(np.zeros(12), ColumnRules.of(12, [], [], 0, 12), math.inf, -1.0, 100, PLENTY) is None


@given(pricing_problems())
def test_heaviest_set_is_the_best_subset(problem: tuple[OneDimensionalBlock, ColumnRules, np.ndarray]) -> None:
    _, rules, weights = problem
    masks = subsets(len(weights))
    admitted = masks[rules.admits(masks)]
    bound, mask = heaviest_set(weights, rules, 100_000)
    best = max((float(weights[m].sum()) for m in admitted), default=-math.inf)
    assert (bound == -math.inf and mask is None) if best == -math.inf else 0.0 <= bound + 1e-12 - best <= 1e-9
    assert mask is None or rules.admits(mask[None, :])[0]


def test_rules_close_ties_and_notice_contradictions() -> None:
    rules = ColumnRules.of(5, [(0, 1), (1, 4)], [(4, 2), (2, 0)], 0, 5)
    assert rules.group.tolist() == [0, 0, 1, 2, 0]
    assert rules.apart.tolist() == [[0, 1]]
    assert not rules.contradictory
    assert ColumnRules.of(3, [(0, 1), (1, 2)], [(0, 2)], 0, 3).contradictory
    assert ColumnRules.of(3, [(0, 1), (1, 2)], [], 0, 2).contradictory


def test_value_is_the_closed_form() -> None:
    y = np.array([0.0, 1.0, 5.0, 9.0])
    factor = clusters_1d(Model().categorical("z", 2, shape=4), y, variance=2.0)
    assert factor.cluster_value(np.array([0, 1])) == pytest.approx(-0.5 / 4.0)
    assert factor.cluster_value(np.array([], dtype=np.int64)) == 0.0
    one_hot = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=float).ravel()
    assert factor.value(one_hot) == pytest.approx(-(0.5 + 8.0) / 4.0)


def test_wrong_partitions_are_refused() -> None:
    m = Model()
    z, k = m.categorical("z", 3, shape=4), m.categorical("k", 2)
    for items, y, variance, message in [
        (z, [1.0, 2.0], 1.0, "shape"),
        (z, [1.0, np.inf, 0.0, 0.0], 1.0, "finite"),
        (z, [1.0, 2.0, 3.0, 4.0], 0.0, "variance"),
        ([z[0], z[0]], [1.0, 2.0], 1.0, "twice"),
        ([z[0], k], [1.0, 2.0], 1.0, "same clusters"),
        ([], [], 1.0, "at least one"),
    ]:
        with pytest.raises(ModelError, match=message):
            clusters_1d(items, y, variance)


def test_blocks_are_found_by_kind() -> None:
    assert block_class(OneDimensionalClusters.kind) is OneDimensionalBlock
    with pytest.raises(KeyError, match="no block is registered"):
        block_class("unheard-of")
