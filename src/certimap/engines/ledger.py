"""The ledger: the incumbent, the proved bound, the history, and the decision to stop. All engines write into one."""

from __future__ import annotations

import math
import resource
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from certimap.results import Callback, IterationRecord, StopReason, relative_gap


@dataclass(frozen=True)
class Limits:
    """When to stop. `gap` is relative, see `results.relative_gap`; limits that are None do not bind."""

    gap: float = 1e-6
    max_nodes: int | None = None
    max_iterations: int | None = None
    time_limit: float | None = None
    memory_limit: float | None = None  # megabytes of resident memory of the process


def checked_limits(tol: float, max_nodes: int | None, time_limit: float | None) -> Limits:
    """Limits from the arguments of a solve; ValueError for a wrong one."""
    if not (math.isfinite(tol) and tol >= 0.0):
        raise ValueError(f"tol must be a finite number >= 0, got {tol!r}.")
    for name, limit in (("max_nodes", max_nodes), ("time_limit", time_limit)):
        if limit is not None and not limit > 0:
            raise ValueError(f"{name} must be positive or None, got {limit!r}.")
    return Limits(gap=tol, max_nodes=max_nodes, time_limit=time_limit)


class Ledger:
    """Keeps log_map <= MAP <= upper_bound. Only engines that proved a bound call `prove`."""

    def __init__(self, limits: Limits, callback: Callback | None = None, parent: Ledger | None = None) -> None:
        """`parent`: of a solve within a solve, which stops as well when the outer one has to."""
        self.limits = limits
        self._parent = parent
        self.assignment: Mapping[str, Any] | None = None
        self.log_map = -math.inf
        self.upper_bound = math.inf
        self.history: list[IterationRecord] = []
        self.iterations = 0
        self.nodes = 0
        self.interrupted = False
        self._callback = callback
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Until the time limit, its own or an outer one; None without a limit."""
        left = [] if self.limits.time_limit is None else [self.limits.time_limit - self.seconds]
        if self._parent is not None and self._parent.seconds_left is not None:
            left.append(self._parent.seconds_left)
        return min(left, default=None)

    # ------------------------------------------------------------------------------------------------------- results
    def offer(self, assignment: Mapping[str, Any], value: float) -> bool:
        """Accept a feasible point (value in closed form) if it beats the incumbent."""
        if not value > self.log_map:
            return False
        self.assignment, self.log_map = assignment, value
        return True

    def prove(self, upper_bound: float) -> None:
        """Record a valid upper bound; the best one stays. A proved bound never lies below a feasible value."""
        self.upper_bound = max(min(self.upper_bound, upper_bound), self.log_map)

    @property
    def cutoff(self) -> float:
        """Boxes with bounds up to here are closed: what they could add lies within the tolerance."""
        if self.log_map == -math.inf:
            return -math.inf
        return self.log_map + self.limits.gap * max(1.0, abs(self.log_map))

    def record(self, source: str, *, open_nodes: int, cuts: int = 0, columns: int = 0) -> None:
        """Append a line to the history and tell the callback."""
        line = IterationRecord(
            source,
            self.iterations,
            self.nodes,
            open_nodes,
            self.upper_bound,
            self.log_map,
            cuts,
            columns,
            self.seconds,
        )
        self.history.append(line)
        if self._callback is not None:
            try:
                self._callback(line)
            except KeyboardInterrupt:
                self.interrupted = True

    def close(self, *, open_nodes: int = 0, cuts: int = 0, columns: int = 0) -> None:
        """End the history with the final numbers, unless its last line has them."""
        last = self.history[-1] if self.history else None
        if last is None or (last.bound, last.incumbent) != (self.upper_bound, self.log_map):
            self.record("B" if self.nodes > 1 else "C", open_nodes=open_nodes, cuts=cuts, columns=columns)

    # ------------------------------------------------------------------------------------------------------ stopping
    def stop_reason(self) -> StopReason | None:
        """The reason to stop now, if there is one."""
        limits = self.limits
        if self.upper_bound == -math.inf:
            return StopReason.EXHAUSTED
        if relative_gap(self.log_map, self.upper_bound) <= limits.gap:
            return StopReason.TOLERANCE
        if limits.max_nodes is not None and self.nodes >= limits.max_nodes:
            return StopReason.NODES
        if limits.max_iterations is not None and self.iterations >= limits.max_iterations:
            return StopReason.ITERATIONS
        return self.urgent_reason()

    def urgent_reason(self) -> StopReason | None:
        """The reason to stop even in the middle of a node."""
        limits = self.limits
        if self.interrupted:
            return StopReason.INTERRUPTED
        if self._parent is not None and (reason := self._parent.urgent_reason()) is not None:
            return reason
        if limits.time_limit is not None and self.seconds >= limits.time_limit:
            return StopReason.TIME
        if limits.memory_limit is not None and resident_megabytes() >= limits.memory_limit:
            return StopReason.MEMORY
        return None

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within, the first Ctrl-C asks for an orderly stop with the results so far; the second one raises."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask_to_stop(signum: int, frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        previous = signal.signal(signal.SIGINT, ask_to_stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)


def resident_megabytes() -> float:
    """Resident memory of this process; where the system does not tell (macOS), the most it ever was."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return pages * resource.getpagesize() / 2**20
