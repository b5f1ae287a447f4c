"""What a solve returns: the point, its value, a valid bound, and what exactly was proved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate

USEFUL_GAP = 1.0  # relative: a bound farther away says less than a proof about a neighbourhood


class Status(Enum):
    """What is proved about the returned point; computed from the bounds, see `classify`."""

    OPTIMAL = "the value is within the tolerance of a valid upper bound"
    BOUNDED = "a finite valid upper bound, farther away than the tolerance"
    FEASIBLE = "a feasible point without a useful bound"
    LOCALLY_OPTIMAL = "no better point within the stated neighbourhood"
    INFEASIBLE = "no point satisfies the constraints; a conflicting set is named"
    UNKNOWN = "stopped before a feasible point was found"


class StopReason(Enum):
    """Why the search ended, apart from what it proved."""

    TOLERANCE = "tolerance"
    EXHAUSTED = "search space exhausted"
    STALLED = "no progress possible"
    NODES = "node limit"
    ITERATIONS = "iteration limit"
    TIME = "time limit"
    MEMORY = "memory limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class IterationRecord:
    """One line of the log: the only thing that tables, callbacks, reports and stopping rules read."""

    source: str  # H heuristic, C cut or column, B branching, E elimination
    iteration: int
    nodes: int
    open_nodes: int
    bound: float
    incumbent: float
    cuts: int
    columns: int
    seconds: float

    @property
    def gap(self) -> float:
        return relative_gap(self.incumbent, self.bound)


Callback = Callable[[IterationRecord], None]


@dataclass(frozen=True, eq=False)
class RankedPartition:
    """One clustering of a ranking: labels of the points, its value, and how far that lies below the best one."""

    labels: NDArray[np.int64]
    log_map: float
    difference: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best clusterings, the best first: a sequence of `RankedPartition`.

    Clusterings are told apart by which points are together, not by the numbers of the clusters. No clustering besides
    these is worth more than `others`; with fewer than `wanted` of them the ranking ends there, for want of a proof.
    """

    partitions: tuple[RankedPartition, ...]
    others: float
    wanted: int

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, place: int) -> RankedPartition:
        return self.partitions[place]

    def __iter__(self) -> Iterator[RankedPartition]:
        return iter(self.partitions)

    @property
    def complete(self) -> bool:
        """Whether as many clusterings are ranked as were wanted."""
        return len(self) >= self.wanted

    @property
    def proved_difference(self) -> float:
        """All clusterings that lie less than this below the best one are ranked; 0 if none is."""
        return max(0.0, self.partitions[0].log_map - self.others) if self.partitions else 0.0


@dataclass(frozen=True)
class Result:
    """Outcome of a solve. `gap` = upper_bound - log_map; both are -inf for an infeasible model."""

    assignment: Mapping[str, Any] | None
    log_map: float
    upper_bound: float
    status: Status
    stop_reason: StopReason
    certificate: Certificate | None
    history: tuple[IterationRecord, ...] = ()
    conflict: tuple[str, ...] = ()  # INFEASIBLE: names of an irreducible conflicting set of constraints and factors
    neighbourhood: str | None = None  # within what no point is better; proved beside any bound
    local_bound: float | None = None  # a bound that holds only where inner maximisations were global; never a proof
    statistics: Mapping[str, float] = field(default_factory=dict)
    ranking: Ranking | None = None  # of clusterings, where it was asked for

    @property
    def gap(self) -> float:
        return gap_between(self.log_map, self.upper_bound)

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.log_map, self.upper_bound)


@dataclass(frozen=True)
class ConstraintCheck:
    """One constraint beside an answer; `cost` is what violating a soft one costs."""

    kind: str
    subject: str
    hard: bool
    satisfied: bool
    cost: float = 0.0


def gap_between(log_map: float, upper_bound: float) -> float:
    """upper_bound - log_map; 0 where both are the same infinity (an infeasible model leaves no gap)."""
    return 0.0 if log_map == upper_bound else upper_bound - log_map


def relative_gap(log_map: float, upper_bound: float) -> float:
    """(upper_bound - log_map) / max(1, |log_map|), the number that tolerances are about."""
    gap = gap_between(log_map, upper_bound)
    return gap / max(1.0, abs(log_map)) if math.isfinite(gap) else gap


def classify(log_map: float, upper_bound: float, tolerance: float, neighbourhood: str | None = None) -> Status:
    """The status that the numbers justify: a bound that is of use says more than a neighbourhood."""
    if upper_bound == -math.inf:
        return Status.INFEASIBLE
    if log_map == -math.inf:
        return Status.UNKNOWN
    if relative_gap(log_map, upper_bound) <= tolerance:
        return Status.OPTIMAL
    if neighbourhood is not None and relative_gap(log_map, upper_bound) > USEFUL_GAP:
        return Status.LOCALLY_OPTIMAL
    return Status.BOUNDED if math.isfinite(upper_bound) else Status.FEASIBLE
