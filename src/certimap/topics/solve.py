"""`solve_topics`: the best topics that the search finds, a bound on every other assignment, and what both prove."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from certimap._numeric.pool import thread_count
from certimap.certificate import Certificate
from certimap.engines.ledger import Ledger, checked_limits
from certimap.results import Callback, Result, StopReason, classify
from certimap.topics.conflict import conflicting_constraints
from certimap.topics.factor import model_labels
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem
from certimap.topics.proof import prove_topics
from certimap.topics.search.multistart import SearchResult, search

TopicAlgorithm: TypeAlias = Literal["auto", "local-search"]


def solve_topics(
    problem: TopicProblem,
    *,
    tol: float = 1e-3,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    n_init: int = 10,
    seed: int = 0,
    n_jobs: int | None = None,
    algorithm: TopicAlgorithm = "auto",
    callback: Callback | None = None,
) -> Result:
    """Maximise `problem.log_map` over the labellings that satisfy its constraints, and bound it from above.

    The assignment holds the topics of the cells ("z") and the parameters that are optimal for them ("Theta", "beta"),
    with soft seeds also the topics of their anchors ("topic", see `charges`);
    `log_map` is its closed-form value. An infeasible problem has the status INFEASIBLE and a conflict, one for which no
    labelling was found and none excluded has the status UNKNOWN.

    Args:
        problem: what to maximise.
        tol: relative gap at which the answer counts as OPTIMAL.
        max_nodes: nodes of the proof; None: no limit.
        time_limit: seconds; None: no limit.
        n_init: starts of the local search.
        seed: a non-negative integer; equal seeds give equal answers for any `n_jobs`.
        n_jobs: threads; None is 1, -1 all cores.
        algorithm: "auto" searches and proves, "local-search" leaves the proof out.
        callback: called with every IterationRecord. Ctrl-C stops in an orderly way and keeps the result.
    """
    ledger = Ledger(checked_limits(tol, max_nodes, time_limit), callback)
    if algorithm not in get_args(TopicAlgorithm):
        raise ValueError(f"algorithm must be one of {', '.join(get_args(TopicAlgorithm))}, got {algorithm!r}.")
    certificate: Certificate | None = None
    conflict: tuple[str, ...] = ()
    with ledger.interruptible():
        found = search_incumbent(problem, ledger, n_init=n_init, seed=seed, n_jobs=n_jobs)
        if found.proved_infeasible:
            ledger.prove(-math.inf)
            conflict = conflicting_constraints(problem)
        elif algorithm == "auto":
            labellings = [optimum.labels for optimum in found.pool]
            certificate = prove_topics(problem, labellings, ledger, seed=seed, n_jobs=thread_count(n_jobs))
    return Result(
        assignment=None if ledger.assignment is None else _point(problem, ledger.assignment),
        log_map=ledger.log_map,
        upper_bound=ledger.upper_bound,
        status=classify(ledger.log_map, ledger.upper_bound, tol),
        stop_reason=ledger.stop_reason() or StopReason.ITERATIONS,
        certificate=certificate,
        history=tuple(ledger.history),
        conflict=conflict,
        statistics={
            "nodes": ledger.nodes,
            "starts": found.n_starts,
            "failed_starts": found.n_failed,
            "seconds": ledger.seconds,
        },
    )


def search_incumbent(
    problem: TopicProblem, ledger: Ledger, *, n_init: int, seed: int, n_jobs: int | None
) -> SearchResult:
    """Local search from `n_init` starts, every improvement offered to the ledger as it is found."""

    def after_start(best: IntArray | None) -> None:
        ledger.iterations += 1
        if best is not None:
            offer(problem, best, ledger)

    def interrupted() -> bool:
        return ledger.urgent_reason() is not None

    found = search(problem, n_init, seed, n_jobs, interrupted=interrupted, after_start=after_start)
    if found.labels is not None:
        offer(problem, found.labels, ledger)
    return found


def offer(problem: TopicProblem, labels: IntArray, ledger: Ledger) -> None:
    """Value a labelling of the items in closed form; a line in the history if it is the best so far."""
    value = problem.log_map(labels)
    if value > ledger.log_map:
        ledger.offer(model_labels(problem, labels), value)
        ledger.record("H", open_nodes=0)


def _point(problem: TopicProblem, assignment: Mapping[str, Any]) -> Mapping[str, Any]:
    """The point of the posterior that belongs to topics of the cells: these, and the parameters optimal for them."""
    parameters = problem.objective.parameters(assignment["z"])
    return {**assignment, "Theta": parameters.doc_topic, "beta": parameters.topic_word}
