"""SCIP through pyscipopt, the `[scip]` extra: what both formulations share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from certimap.baselines.isolation import CrashError, isolated
from certimap.baselines.run import MethodRun, unbounded
from certimap.results import StopReason

if TYPE_CHECKING:
    import pyscipopt

NAME = "branch and bound"
PACKAGE = "pyscipopt"
CRASHED = "crashed"  # in the details of a run
STOPS = {
    "optimal": StopReason.TOLERANCE,
    "gaplimit": StopReason.TOLERANCE,
    "timelimit": StopReason.TIME,
    "memlimit": StopReason.MEMORY,
    "nodelimit": StopReason.NODES,
    "totalnodelimit": StopReason.NODES,
    "userinterrupt": StopReason.INTERRUPTED,
}


class MissingSolverError(ImportError):
    """Branch and bound was asked for, and pyscipopt is not installed."""


@dataclass(frozen=True)
class Search:
    """How a search ended. Both bounds are SCIP's own, in floating point and up to its feasibility tolerances.

    Attributes:
        solutions: what was read off every stored solution, the best by SCIP's reckoning first.
        primal, dual: value of the first and the bound on all, as SCIP states them; None: no solution.
    """

    solutions: tuple[Any, ...]
    primal: float | None
    dual: float
    nodes: int
    seconds: float
    stop_reason: StopReason


def apart(method: Callable[..., MethodRun], problem: Any, time_limit: float) -> MethodRun:
    """Branch and bound in a process of its own: SCIP may corrupt its memory, which leaves a run without an answer."""
    started = time.perf_counter()
    try:
        return isolated(method, problem, time_limit=time_limit)
    except CrashError as error:
        nothing = unbounded(None, -math.inf, StopReason.STALLED)
        return MethodRun(NAME, nothing, nothing, time.perf_counter() - started, details={CRASHED: 1.0, "error": error})


def is_available() -> bool:
    """Whether pyscipopt can be imported."""
    return find_spec(PACKAGE) is not None


def solver_packages() -> tuple[str, ...]:
    """The installed packages that branch and bound depends on."""
    return (PACKAGE,) if is_available() else ()


def new_program(time_limit: float | None, max_nodes: int | None) -> pyscipopt.Model:
    """An empty, silent program on one thread."""
    if not is_available():
        raise MissingSolverError("branch and bound needs pyscipopt: pip install 'certimap[scip]'")
    import pyscipopt

    program = pyscipopt.Model()
    program.hideOutput()
    program.setParam("parallel/maxnthreads", 1)
    program.setParam("limits/gap", 1e-6)
    if time_limit is not None:
        program.setParam("limits/time", time_limit)
    if max_nodes is not None:
        program.setParam("limits/nodes", max_nodes)
    return program


def maximise(program: pyscipopt.Model, objective: Any, read: Callable[[Any], Any]) -> Search:
    """Run SCIP; `read` takes a solution and returns what is wanted of it."""
    program.setObjective(objective, "maximize")
    program.optimize()
    solutions = program.getSols()
    return Search(
        tuple(read(solution) for solution in solutions),
        float(program.getPrimalbound()) if solutions else None,
        float(program.getDualbound()),
        int(program.getNTotalNodes()),
        float(program.getSolvingTime()),
        STOPS.get(program.getStatus(), StopReason.STALLED),
    )
