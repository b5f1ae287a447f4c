"""The engine: valid bounds at every stop, the same answer from the same seed, the shape of its tree."""

import math
import os
import signal
from functools import partial

import numpy as np
import pytest
from tests.helpers import assert_solved

import certimap.oracles  # noqa: F401  # registers the families
from certimap import Model, Status, StopReason, gaussian, polynomial, ridge, table
from certimap.engines.branch_and_cut import BranchAndCut, Tree
from certimap.engines.branching import Split
from certimap.engines.ledger import Ledger, Limits
from certimap.engines.proof import tree_certificate
from certimap.graph.compile import compile_model
from certimap.oracles.protocol import Box, oracles_for
from certimap.solver import solve as solve_by

solve = partial(solve_by, algorithm="branch-and-cut")


def frustrated_grid(size=5, seed=1):
    """Random couplings of either sign: the root bound leaves a gap, so the search has something to do."""
    rng = np.random.default_rng(seed)
    m = Model()
    z = m.binary("z", shape=(size, size))
    m.add([table(v, 0.1 * rng.normal(size=2)) for v in z.ravel()])
    for i in range(size):
        for j in range(size):
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < size and b < size:
                    m.add(table([z[i, j], z[a, b]], rng.choice([-1.0, 1.0]) * np.eye(2)))
    return m


def small_frustrated():
    """A frustrated grid and its optimum, by adding the tables up over all 2^16 states."""
    m = frustrated_grid(4, seed=3)
    axis = {name: k for k, name in enumerate(m.variables)}
    total = np.zeros((2,) * len(axis))
    for f in m.factors:
        shape = np.ones(len(axis), dtype=int)
        shape[[axis[v.name] for v in f.scope]] = 2
        total += f.log_values.reshape(shape)  # scopes are in the order of the variables
    return m, float(total.max())


def wavy():
    """A non-concave function of two reals that needs several boxes."""
    m = Model()
    x = m.real("x", -2.0, 2.0, shape=2)
    g = polynomial([0.0, 0.3, 2.0, 0.1, -1.0])
    m.add(ridge(x[0] - 0.5 * x[1], g), ridge(x[1] + 0.5 * x[0], g), ridge(x[0], gaussian(0.2)))
    return m


# --------------------------------------------------------------------------------------------------------- stopping
@pytest.mark.parametrize(
    "limits, reason",
    [
        ({"max_nodes": 1}, StopReason.NODES),
        ({"max_nodes": 3}, StopReason.NODES),
        ({"time_limit": 1e-9}, StopReason.TIME),
        ({"memory_limit": 1.0}, StopReason.MEMORY),
        ({"gap": 10.0}, StopReason.TOLERANCE),
    ],
)
def test_every_limit_leaves_an_incumbent_and_a_valid_bound(limits, reason):
    m, optimum = small_frustrated()
    result = solve(m, **limits)
    assert_solved(m, result, optimum=optimum)
    assert result.stop_reason is reason
    assert result.assignment is not None
    assert result.upper_bound >= optimum - 1e-9


def test_an_iteration_limit_stops_the_engine():
    m, optimum = small_frustrated()
    graph = compile_model(m)
    for limit in (1, 2, 5):
        ledger = Ledger(Limits(max_iterations=limit))
        engine = BranchAndCut(graph, oracles_for(graph), ledger)
        assert engine.run() is StopReason.ITERATIONS
        assert ledger.iterations >= limit, "a node is finished before the engine stops"
        assert ledger.upper_bound >= optimum - 1e-9
        assert tree_certificate(engine) is not None


def test_without_limits_the_frustrated_grid_is_solved():
    m, optimum = small_frustrated()
    result = solve(m)
    assert_solved(m, result, optimum=optimum, status=Status.OPTIMAL)
    assert result.log_map == pytest.approx(optimum, abs=1e-9)


def test_a_time_limit_is_respected():
    result = solve(wavy(), time_limit=1.0, gap=0.0)
    assert result.statistics["seconds"] < 3.0
    assert math.isfinite(result.upper_bound)


@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_keeps_the_incumbent_and_a_valid_bound(after):
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def interrupt(record):
        seen.append(record)
        if len(seen) == after:
            os.kill(os.getpid(), signal.SIGINT)

    m, optimum = small_frustrated()
    result = solve(m, callback=interrupt)
    assert result.stop_reason is StopReason.INTERRUPTED
    assert_solved(m, result, optimum=optimum)
    assert result.assignment is not None
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_raises():
    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    m, _ = small_frustrated()
    ledger = Ledger(Limits(), interrupt)
    graph = compile_model(m)
    engine = BranchAndCut(graph, oracles_for(graph), ledger)
    with ledger.interruptible():
        assert engine.run() is StopReason.INTERRUPTED  # the callback turns the second one into the orderly stop, too
    with pytest.raises(KeyboardInterrupt), ledger.interruptible():
        os.kill(os.getpid(), signal.SIGINT)


def test_stopping_inside_the_root_loop_keeps_what_was_proved():
    m = wavy()
    optimum = solve(m, gap=1e-4).log_map
    bounds = []
    for nodes in (1, 4, 16):
        result = solve(m, max_nodes=nodes)
        assert_solved(m, result, optimum=optimum)
        bounds.append(result.upper_bound)
    assert bounds == sorted(bounds, reverse=True)


# ------------------------------------------------------------------------------------------------------ determinism
def without_clock(result):
    history = [(r.source, r.iteration, r.nodes, r.open_nodes, r.bound, r.incumbent, r.cuts) for r in result.history]
    assignment = {k: np.asarray(v).tolist() for k, v in result.assignment.items()}
    return result.log_map, result.upper_bound, result.status, result.stop_reason, assignment, history


@pytest.mark.parametrize("make", [frustrated_grid, wavy])
def test_the_same_seed_gives_the_same_result_and_history(make):
    runs = [solve(make(), seed=7, max_nodes=20, gap=1e-5) for _ in range(2)]
    assert without_clock(runs[0]) == without_clock(runs[1])


def test_the_number_of_workers_changes_nothing():
    runs = [solve(frustrated_grid(), seed=5, max_nodes=20, n_jobs=n) for n in (1, 2)]
    assert without_clock(runs[0]) == without_clock(runs[1])


def test_other_seeds_prove_the_same_optimum():
    m, optimum = small_frustrated()
    for seed in range(3):
        result = solve(m, seed=seed)
        assert result.status is Status.OPTIMAL
        assert result.log_map == pytest.approx(optimum, abs=1e-9)


# ------------------------------------------------------------------------------------------------------------- tree
def test_the_tree_is_best_first_and_bounds_all_its_leaves():
    tree = Tree(Box(np.zeros(2), np.full(2, 4.0)))
    root = tree.pop()
    root.bound = 10.0
    tree.split(root, Split(0, (0.0, 1.0), (2.0, 4.0)))
    assert (len(tree), tree.bound()) == (2, 10.0)
    left = tree.pop()
    assert left.box.upper.tolist() == [1.0, 4.0]
    left.bound = 3.0
    tree.close(left)
    right = tree.pop()
    assert right.box.lower.tolist() == [2.0, 0.0]
    right.bound = 7.0
    tree.split(right, Split(1, (0.0, 2.0), (2.0, 4.0)))
    assert tree.bound() == 7.0
    assert [leaf.index for leaf in tree.leaves()] == [1, 3, 4]
    assert [(r.parent, r.column) for r in tree.records] == [(-1, -1), (0, 0), (0, 0), (2, 1), (2, 1)]


def test_history_starts_with_a_heuristic_point_and_counts_up():
    result = solve(frustrated_grid(4, seed=3))
    assert result.history[0].source == "H"
    assert {r.source for r in result.history} <= {"H", "C", "B"}
    assert result.history[-1].nodes <= result.statistics["nodes"]
