"""What a baseline hands back: its answer twice on one objective, as it returned it and after a closed-form refit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certimap.results import IterationRecord, Result, Status, StopReason


@dataclass(frozen=True)
class MethodRun:
    """One method on one problem.

    Attributes:
        name: of the method, for tables.
        returned: the method's own point. Labels are its most probable ones, parameters its own estimates, and `log_map`
            the log-density of the posterior at just that point.
        refitted: the same labels with the parameters that are optimal for them.
        seconds: wall-clock time, without compilation where the method is compiled by certimap.
        claimed_bound: an upper bound that the method states without a proof that others can check; None if it has none.
        details: further numbers and arrays, by name.
    """

    name: str
    returned: Result
    refitted: Result
    seconds: float
    claimed_bound: float | None = None
    details: Mapping[str, Any] | None = None


def unbounded(
    assignment: Mapping[str, Any] | None,
    log_map: float,
    stop_reason: StopReason = StopReason.ITERATIONS,
    statistics: Mapping[str, float] | None = None,
    history: tuple[IterationRecord, ...] = (),
) -> Result:
    """The result of a method that proves nothing about other points."""
    return Result(
        assignment=assignment,
        log_map=log_map,
        upper_bound=math.inf,
        status=Status.UNKNOWN if assignment is None else Status.FEASIBLE,
        stop_reason=stop_reason,
        certificate=None,
        history=history,
        statistics=statistics or {},
    )
