"""Branch-and-cut against its peers, one thread: grids, the root bound, sparse logistic and switching regression."""

from __future__ import annotations

import time
from collections.abc import Iterable

from benchmarks import instances, peers
from certimap import Model, Result
from certimap.solver import solve

GRID_LIMIT = 30  # seconds
REGRESSION_LIMIT = 60
GAP = 1e-6

GRIDS = [
    instances.random_grid(10, 4, seed=1),
    instances.random_grid(12, 3, seed=2),
    instances.frustrated_grid(10, 2, seed=3),
    instances.frustrated_grid(15, 2, seed=4),
    instances.random_grid(20, 4, seed=5),
]


def grids() -> Iterable[str]:
    """Random and frustrated grids against toulbar2 and HiGHS on the local-polytope integer program."""
    for small in (instances.random_grid(3, 4, seed=0), instances.frustrated_grid(4, 2, seed=0)):
        solve(small.model())  # compiles the kernels
    for grid in GRIDS:
        ours, seconds = _timed(grid.model(), GRID_LIMIT)
        yield _line(grid.name, ours, seconds, peers.toulbar2(grid, GRID_LIMIT), peers.highs(grid, GRID_LIMIT))


def root_bound() -> Iterable[str]:
    """Seconds to the root bound of a 20x20 Potts grid, and that bound against the local polytope's."""
    solve(instances.attractive_grid(4, 3, seed=0).model(), max_nodes=1)
    grid = instances.attractive_grid(20, 3, seed=1)
    ours, _ = _timed(grid.model(), GRID_LIMIT, max_nodes=1)
    reference = peers.highs(grid, GRID_LIMIT, relaxed=True)
    reached = next((r for r in ours.history if r.nodes <= 1 and r.bound <= _close_to(reference.bound)), None)
    seconds = "never" if reached is None else f"{reached.seconds:.2f} s"
    ratio = "" if reached is None else f" | ratio {reached.seconds / reference.seconds:.2f}"
    yield (
        f"root bound, {grid.name}: {ours.upper_bound:.6f} value {ours.log_map:.6f}, at the local polytope's bound "
        f"{reference.bound:.6f} after {seconds} | {reference}{ratio}"
    )


def sparse_logistic() -> Iterable[str]:
    """20 features, 100 data, at most 5 nonzero weights, against SCIP."""
    solve(instances.sparse_logistic(features=5, data=10).model(), max_nodes=20)
    instance = instances.sparse_logistic()
    ours, seconds = _timed(instance.model(), REGRESSION_LIMIT)
    yield _line("sparse logistic 20/100/5", ours, seconds, peers.scip_sparse_logistic(instance, REGRESSION_LIMIT))


def switching_regression() -> Iterable[str]:
    """50 data on two lines, against SCIP."""
    solve(instances.switching_regression(data=6).model(), max_nodes=20)
    instance = instances.switching_regression()
    ours, seconds = _timed(instance.model(), REGRESSION_LIMIT)
    peer = peers.scip_switching_regression(instance, REGRESSION_LIMIT)
    yield _line("switching regression N=50 K=2", ours, seconds, peer)


def _timed(model: Model, limit: float, max_nodes: int | None = None) -> tuple[Result, float]:
    started = time.perf_counter()
    result = solve(model, gap=GAP, time_limit=limit, max_nodes=max_nodes)
    return result, time.perf_counter() - started


def _line(name: str, ours: Result, seconds: float, *others: peers.Answer) -> str:
    """Ratios are peer's seconds over ours; above one, ours is faster."""
    ratios = ", ".join(f"{p.name} {p.seconds / seconds:.2f}" for p in others)
    return (
        f"{name}: {ours.log_map:.4f} bound {ours.upper_bound:.4f} gap {ours.gap:.1e} {ours.status.name} "
        f"{ours.statistics['nodes']} nodes {seconds:.2f} s | {' | '.join(map(str, others))} | time ratio {ratios}"
    )


def _close_to(bound: float | None) -> float:
    assert bound is not None, "a relaxation always has a value"
    return bound + 1e-5 * max(1.0, abs(bound))
