"""Pricing in batches, by the CPU build of the GPU's code: the verdicts of the tree search, whatever the batch size."""

import numpy as np
import pytest
from tests.mixture.test_pricing import PRIORS, Case, _data

from certimap.mixture import pricing
from certimap.mixture.kernel.batch import Batch, HostDevice
from certimap.mixture.kernel.gpu import device_finder
from certimap.mixture.kernel.whitening import FORMS
from certimap.mixture.pricing import Budget, PricingStatus, certify, root_boxes, size_ranges


def on_host(**limits):
    return Budget(device=HostDevice, **limits)


def posed(case, above):
    """The kernel's form of a case, with the threshold this far above its best set, and the value of that set there."""
    problem = case.problem
    best = case.best + 0.5 * problem.v * problem.log_det
    prices = case.prices + 0.5 * problem.log_det * problem.weight
    return pricing.KernelProblem(problem, prices, best + above, 0.0), best


def never(bound, nodes):
    return False


@pytest.fixture(autouse=True)
def _nearly_all_on_the_device(monkeypatch):
    monkeypatch.setattr(pricing, "FIRST_NODES", 40)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("kind", FORMS)
def test_points(kind, dimension, prior):
    rng = np.random.default_rng(dimension)
    Case(_data(rng, 9, dimension), prior, rng.normal(size=9), kind=kind).check(budget=on_host())


def test_groups_and_limits_on_sizes():
    rng = np.random.default_rng(5)
    groups = np.array([0, 1, 1, 1, 2, 3, 3, 4, 5, 6, 7, 7])
    Case(_data(rng, 12, 2), PRIORS["default"], rng.normal(size=12), groups=groups).check(budget=on_host())
    Case(_data(rng, 9, 2), PRIORS["default"], rng.normal(size=9), min_size=2, max_size=6).check(budget=on_host())


def test_conflicts_stay_on_the_processor():
    rng = np.random.default_rng(6)
    Case(_data(rng, 9, 2), PRIORS["default"], rng.normal(size=9), conflicts=[(0, 1), (2, 5)]).check(budget=on_host())


def test_any_batch_size_and_the_tree_search_visit_the_same_nodes():
    rng = np.random.default_rng(5)
    case = Case(_data(rng, 12, 3), PRIORS["default"], rng.normal(size=12))
    problem, best = posed(case, above=1e-3)
    boxes = root_boxes(case.problem, size_ranges(case.problem))
    runs = []
    for size in (1, 7, 1000):
        batch = Batch(problem.input, boxes, HostDevice(), batch=size)
        runs.append(batch.run(keep_going=True, max_found=100, max_nodes=None, should_stop=never))
        assert runs[-1].finished
        assert runs[-1].bound <= best + 1e-3
        np.testing.assert_array_equal(runs[-1].nodes, runs[0].nodes)
    tree = problem.search(boxes, max_nodes=None, seconds=None, threads=1, opening=0, max_found=100)
    np.testing.assert_array_equal(tree.record.below_roots(), runs[0].nodes)


def test_the_record_counts_the_nodes_of_the_device_too():
    rng = np.random.default_rng(16)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    verdict = certify(case.problem, case.prices, case.best + 1e-6, budget=on_host(record_boxes=16))
    assert verdict.nodes > 100
    assert verdict.record.nodes.sum() == verdict.nodes


@pytest.mark.parametrize("nodes", [60, 200, 1000])
def test_a_stop_leaves_a_valid_bound(nodes):
    rng = np.random.default_rng(13)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    stopped = certify(case.problem, case.prices, case.best + 1e-6, budget=on_host(max_nodes=nodes))
    assert stopped.status is PricingStatus.NODE_LIMIT
    assert stopped.open is None or len(stopped.open)
    assert stopped.bound >= case.best


def test_progress_is_asked_and_obeyed():
    rng = np.random.default_rng(13)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    told = []

    def stop(bound, nodes):
        told.append((bound, nodes))
        return True

    stopped = certify(case.problem, case.prices, case.best + 1e-6, budget=on_host(progress=stop))
    assert stopped.status is PricingStatus.NODE_LIMIT
    assert (stopped.bound, stopped.nodes) == told[0]
    assert stopped.bound >= case.best


def test_a_full_pool_stops_with_a_bound():
    rng = np.random.default_rng(13)
    case = Case(_data(rng, 10, 3), PRIORS["default"], rng.normal(size=10))
    problem, best = posed(case, above=1e-6)
    batch = Batch(problem.input, root_boxes(case.problem, size_ranges(case.problem)), HostDevice(), batch=64)
    batch.pool.capacity = batch.size + 3
    for part in ("real", "word", "mark"):
        setattr(batch.pool, part, np.ascontiguousarray(getattr(batch.pool, part)[:, : batch.pool.capacity]))
    result = batch.run(keep_going=True, max_found=100, max_nodes=None, should_stop=never)
    assert not result.finished
    assert result.bound >= best


def test_devices_are_chosen_by_name():
    assert device_finder("cpu") is None
    with pytest.raises(ValueError, match="device must be one of auto, cpu, gpu, got 'tpu'"):
        device_finder("tpu")
