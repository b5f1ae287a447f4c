"""`solve`: compile the model, choose the engine, and return a result whose status follows from its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Literal, get_args

from certimap.certificate import Certificate
from certimap.engines.branch_and_cut import BranchAndCut
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.conflict import irreducible_conflict
from certimap.engines.decomposition import run_with_best_blocks
from certimap.engines.elimination import Elimination
from certimap.engines.gbd import GeneralisedBenders
from certimap.engines.ledger import Ledger, Limits
from certimap.engines.partition_problem import is_partition_graph
from certimap.engines.proof import tree_certificate
from certimap.graph.compile import compile_model
from certimap.graph.graph import FactorGraph
from certimap.model.checks import not_negative
from certimap.model.errors import ModelError
from certimap.model.model import Model
from certimap.oracles.protocol import oracles_for
from certimap.results import Callback, Result, Status, StopReason, classify

Algorithm = Literal["auto", "branch-and-cut", "branch-and-price", "elimination", "gbd"]


def solve(
    model: Model,
    *,
    gap: float = 1e-6,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    seed: int = 0,
    algorithm: Algorithm = "auto",
    n_jobs: int = 1,
    callback: Callback | None = None,
) -> Result:
    """Maximise the model's log-density and prove how good the answer is.

    gap: relative gap (upper_bound - log_map) / max(1, |log_map|) at which the answer counts as OPTIMAL.
    max_nodes, time_limit (seconds), memory_limit (megabytes): stop early; the result still carries a valid bound.
    n_jobs: threads for the independent parts of the primal search; the answer does not depend on it.
    algorithm: "auto" takes "branch-and-price" for models of one partition factor, "branch-and-cut" for all others, and
        "elimination" where that leaves a gap at the root of a model with small treewidth; "gbd" is the paper's loop.
    callback: called with every IterationRecord. Ctrl-C stops in an orderly way and keeps the result.

    Never raises for a hard or infeasible model, only for a wrong one (ModelError).
    """
    _check(model, seed, algorithm, n_jobs, callback)
    ledger = Ledger(_limits(gap, max_nodes, time_limit, memory_limit), callback)
    graph = compile_model(model)
    with ledger.interruptible():
        if algorithm == "gbd":
            return _gbd(graph, ledger)
        if algorithm == "branch-and-price" or (algorithm == "auto" and is_partition_graph(graph)):
            return _branch_and_price(graph, ledger, seed, n_jobs)
        if algorithm == "elimination":
            return _elimination(graph, ledger)
        return _branch_and_cut(graph, ledger, seed, n_jobs, or_eliminate=algorithm == "auto")


def _branch_and_cut(graph: FactorGraph, ledger: Ledger, seed: int, n_jobs: int, *, or_eliminate: bool) -> Result:
    """`or_eliminate`: go over to elimination where the root leaves a gap and the model's treewidth is small."""
    root = BranchAndCut(graph, oracles_for(graph), ledger, seed=seed, n_jobs=n_jobs)
    if or_eliminate and root.run(node_budget=0) is None:
        elimination = Elimination.of(graph, ledger)
        if elimination is not None and (reason := elimination.run()) is not None:
            return _eliminated(graph, ledger, elimination, reason)
    engine, reason = run_with_best_blocks(root, ledger, seed=seed, n_jobs=n_jobs)
    ledger.close(open_nodes=len(engine.tree), cuts=len(engine.master.pool))
    conflict = _conflict(graph, ledger)
    work = {"lp_solves": engine.master.solves, "cuts": len(engine.master.pool)}
    return _result(ledger, reason, tree_certificate(engine, conflict), conflict, work)


def _elimination(graph: FactorGraph, ledger: Ledger) -> Result:
    engine = Elimination.of(graph, ledger)
    if engine is None:
        raise ModelError("solve: elimination needs a discrete model of tables and constraints with small treewidth")
    return _eliminated(graph, ledger, engine, engine.run())


def _eliminated(graph: FactorGraph, ledger: Ledger, engine: Elimination, reason: StopReason | None) -> Result:
    ledger.close()
    stopped = ledger.stop_reason() if reason is None else reason
    assert stopped is not None, "only a limit stops an elimination"
    conflict = _conflict(graph, ledger)
    certificate = None if reason is None else engine.certificate(conflict)
    return _result(ledger, stopped, certificate, conflict, {})


def _branch_and_price(graph: FactorGraph, ledger: Ledger, seed: int, n_jobs: int) -> Result:
    engine = BranchAndPrice(graph, ledger, seed=seed, n_jobs=n_jobs)
    reason = engine.run()
    ledger.close(open_nodes=len(engine.tree), columns=len(engine.pool))
    conflict = _conflict(graph, ledger)
    work = {"lp_solves": engine.solves, "columns": len(engine.pool)}
    return _result(ledger, reason, engine.certificate(conflict), conflict, work)


def _gbd(graph: FactorGraph, ledger: Ledger) -> Result:
    engine = GeneralisedBenders(graph, oracles_for(graph), ledger)
    reason = engine.run()
    ledger.close(cuts=len(engine.constraints))
    conflict = _conflict(graph, ledger)
    local_bound = None if engine.certified else engine.local_bound
    work = {"cuts": len(engine.constraints)}
    return _result(ledger, reason, engine.certificate(conflict), conflict, work, local_bound)


def _conflict(graph: FactorGraph, ledger: Ledger) -> tuple[str, ...]:
    infeasible = classify(ledger.log_map, ledger.upper_bound, ledger.limits.gap) is Status.INFEASIBLE
    return irreducible_conflict(graph.model, ledger) if infeasible else ()


def _result(
    ledger: Ledger,
    reason: StopReason,
    certificate: Certificate | None,
    conflict: tuple[str, ...],
    work: Mapping[str, int],
    local_bound: float | None = None,
) -> Result:
    return Result(
        assignment=ledger.assignment,
        log_map=ledger.log_map,
        upper_bound=ledger.upper_bound,
        status=classify(ledger.log_map, ledger.upper_bound, ledger.limits.gap),
        stop_reason=reason,
        certificate=certificate,
        history=tuple(ledger.history),
        conflict=conflict,
        local_bound=local_bound,
        statistics={"nodes": ledger.nodes, "iterations": ledger.iterations, "seconds": ledger.seconds, **work},
    )


def _check(model: object, seed: object, algorithm: object, n_jobs: object, callback: object) -> None:
    if not isinstance(model, Model):
        raise ModelError(f"solve: expected a Model, got {model!r}")
    if algorithm not in get_args(Algorithm):
        raise ModelError(f"solve: algorithm must be one of {', '.join(get_args(Algorithm))}, got {algorithm!r}")
    if not isinstance(seed, Integral) or seed < 0:
        raise ModelError(f"solve: seed must be a whole number >= 0, got {seed!r}")
    if not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ModelError(f"solve: n_jobs must be a whole number other than 0 (-1: all processors), got {n_jobs!r}")
    if callback is not None and not callable(callback):
        raise ModelError(f"solve: callback must be callable or None, got {callback!r}")


def _limits(gap: float, max_nodes: int | None, time_limit: float | None, memory_limit: float | None) -> Limits:
    not_negative("solve: gap", gap)
    for name, limit in (("max_nodes", max_nodes), ("time_limit", time_limit), ("memory_limit", memory_limit)):
        if limit is not None and not (isinstance(limit, Real) and limit > 0):
            raise ModelError(f"solve: {name} must be positive or None, got {limit!r}")
    return Limits(gap=gap, max_nodes=max_nodes, time_limit=time_limit, memory_limit=memory_limit)
