"""`solve_mixture`: the best clustering that the search finds, a bound on every other, and what both prove."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

from certimap._numeric.pool import thread_count
from certimap.certificate import Certificate
from certimap.engines.ledger import Ledger, checked_limits
from certimap.mixture.clusters import IntArray
from certimap.mixture.conflict import conflicting_constraints
from certimap.mixture.kernel.gpu import DeviceChoice, device_finder
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.proof import prove_mixture
from certimap.mixture.ranking import ranking_of
from certimap.mixture.region import NEIGHBOURHOOD, Region, prove_region
from certimap.mixture.search.multistart import SearchResult, search
from certimap.results import Callback, Result, StopReason, classify, relative_gap

MixtureAlgorithm: TypeAlias = Literal["auto", "local-search"]


def solve_mixture(
    problem: MixtureProblem,
    *,
    tol: float = 1e-3,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    n_init: int = 100,
    seed: int = 0,
    n_jobs: int | None = None,
    algorithm: MixtureAlgorithm = "auto",
    device: DeviceChoice = "auto",
    n_top: int = 1,
    callback: Callback | None = None,
) -> Result:
    """Maximise `problem.log_map` over the labellings that satisfy its constraints, and bound it from above.

    The assignment holds the labels of the points ("z") and the parameters that are optimal for them ("pi", "mu",
    "Lambda"); `log_map` is its closed-form value. An infeasible problem has the status INFEASIBLE and a conflict,
    one for which no labelling was found and none excluded has the status UNKNOWN.

    Args:
        problem: what to maximise.
        tol: relative gap at which the answer counts as OPTIMAL.
        max_nodes: nodes of the proof; None: no limit.
        time_limit: seconds; None: no limit.
        n_init: starts of the local search.
        seed: a non-negative integer; equal seeds give equal answers for any `n_jobs`.
        n_jobs: threads; None is 1, -1 all cores.
        algorithm: "auto" searches and proves, "local-search" leaves the proof out.
        device: where long proofs run: "gpu", "cpu", or "auto" for a GPU if CuPy finds one. The bounds are valid on all.
        n_top: how many of the best clusterings to rank, with a proof that no other comes before them; 1: no ranking.
        callback: called with every IterationRecord. Ctrl-C stops in an orderly way and keeps the result.
    """
    ledger = Ledger(checked_limits(tol, max_nodes, time_limit), callback)
    if algorithm not in get_args(MixtureAlgorithm):
        raise ValueError(f"algorithm must be one of {', '.join(get_args(MixtureAlgorithm))}, got {algorithm!r}.")
    if n_top < 1:
        raise ValueError(f"n_top must be at least 1, got {n_top!r}.")
    device_finder(device)
    certificate: Certificate | None = None
    conflict: tuple[str, ...] = ()
    with ledger.interruptible():
        found = search_incumbent(problem, ledger, n_init=n_init, seed=seed, n_jobs=n_jobs)
        if found.proved_infeasible:
            ledger.prove(-math.inf)
            conflict = conflicting_constraints(problem)
        elif algorithm == "auto":
            certificate = prove(problem, found, ledger, n_jobs=n_jobs, device=device, n_top=n_top)
        region = look_around(problem, ledger) if algorithm == "auto" else None
    neighbourhood = None if region is None else str(region)
    status = classify(ledger.log_map, ledger.upper_bound, tol, neighbourhood)
    if certificate is not None and (region is not None or ledger.log_map > certificate.log_map):
        certificate = replace(
            certificate,
            log_map=ledger.log_map,
            upper_bound=ledger.upper_bound,
            assignment=ledger.assignment,
            status=status.name,
            details={**certificate.details, **({} if region is None else {NEIGHBOURHOOD: region.record()})},
        )
    return Result(
        assignment=None if ledger.assignment is None else point_of(problem, ledger.assignment["z"]),
        log_map=ledger.log_map,
        upper_bound=ledger.upper_bound,
        status=status,
        stop_reason=ledger.stop_reason() or StopReason.ITERATIONS,
        certificate=certificate,
        history=tuple(ledger.history),
        conflict=conflict,
        neighbourhood=neighbourhood,
        statistics={
            "nodes": ledger.nodes,
            "starts": found.n_starts,
            "failed_starts": found.n_failed,
            "seconds": ledger.seconds,
        },
        ranking=ranking_of(problem, certificate, ledger.upper_bound, n_top) if n_top > 1 else None,
    )


def search_incumbent(
    problem: MixtureProblem, ledger: Ledger, *, n_init: int, seed: int, n_jobs: int | None
) -> SearchResult:
    """Local search from `n_init` starts, every improvement offered to the ledger as it is found."""

    offered: IntArray | None = None

    def after_start(best: IntArray | None) -> bool:
        nonlocal offered
        ledger.iterations += 1
        if best is not None and best is not offered:
            offer(problem, best, ledger)
            offered = best
        return ledger.urgent_reason() is not None

    found = search(problem, n_init, seed, n_jobs, should_stop=after_start)
    if found.labels is not None:
        offer(problem, found.labels, ledger)
    return found


def offer(problem: MixtureProblem, labels: IntArray, ledger: Ledger) -> None:
    """Value a labelling of the items in closed form; a line in the history if it is the best so far."""
    value = problem.log_map(labels)
    if value > ledger.log_map:
        ledger.offer({"z": problem.point_labels(labels)}, value)
        ledger.record("H", open_nodes=0)


def point_of(problem: MixtureProblem, labels: IntArray) -> Mapping[str, Any]:
    """The point of the posterior that belongs to labels of the points: these, and the parameters optimal for them."""
    parameters = problem.objective.parameters(problem.item_labels(labels))
    return {
        "z": labels,
        "pi": parameters.weights,
        "mu": parameters.means,
        "Lambda": parameters.precisions,
    }


def look_around(problem: MixtureProblem, ledger: Ledger) -> Region | None:
    """Where the gap stays open: prove that no clustering with a few moved points is better, or find one."""
    if ledger.assignment is None or relative_gap(ledger.log_map, ledger.upper_bound) <= ledger.limits.gap:
        return None
    region, labels = prove_region(problem, problem.item_labels(ledger.assignment["z"]), ledger)
    offer(problem, labels, ledger)
    ledger.prove(ledger.upper_bound)
    return region


def prove(
    problem: MixtureProblem,
    found: SearchResult,
    ledger: Ledger,
    *,
    n_jobs: int | None,
    device: DeviceChoice,
    n_top: int,
) -> Certificate | None:
    """Bound the MAP from above: the bound and better labellings of the points go into the ledger, as {"z": labels}.

    The certificate refers to `mixture_model(problem)`. Of a kind of problem that no proof is known for, the upper bound
    stays infinite.
    """
    labellings = [optimum.labels for optimum in found.pool]
    return prove_mixture(problem, labellings, ledger, n_jobs=thread_count(n_jobs), device=device, n_top=n_top)
