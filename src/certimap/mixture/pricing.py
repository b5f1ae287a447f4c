"""Certified pricing of Gaussian clusters: max over sets S of c(S) - lambda(S), by the compiled kernel.

`whiten` brings a problem into the kernel's form (W0 = I), `certify` proves that no admissible set is worth more than a
target or finds one that is, `enumerate_columns` lists every set within a slack of it. The bound of a verdict holds at
any stop, a Ctrl-C included. The mathematics stands in the headers: `kernel/classify.hpp` (which items are in or out),
`kernel/contract.hpp` (shrinking a box), `kernel/bound.hpp` (the bound), `kernel/sizes.hpp` (limits on the size).
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.kernel.batch import Batch, Device
from certimap.mixture.kernel.boxes import BoxList, root_boxes, size_ranges
from certimap.mixture.kernel.call import (
    CERTIFIED,
    COLUMN_LIMIT,
    NODE_LIMIT,
    TIME_LIMIT,
    VIOLATED,
    KernelProblem,
    Outcome,
    ReplayRecord,
)
from certimap.mixture.kernel.whitening import WhitenedProblem, cluster_axes, whiten

__all__ = [
    "BoxList",
    "Budget",
    "Column",
    "PricingStatus",
    "PricingVerdict",
    "ReplayRecord",
    "WhitenedProblem",
    "certify",
    "cluster_axes",
    "enumerate_columns",
    "root_boxes",
    "size_ranges",
    "whiten",
]

SLICE_NODES = 2_000_000  # between two reports of progress
FIRST_NODES = 200_000  # on the processor before a device is asked: fewer are done there sooner


class PricingStatus(Enum):
    """What a pricing run proved, or why it stopped before."""

    CERTIFIED = 0  # no admissible set above the target; of an enumeration: the list is complete
    VIOLATED = 1  # a set above the target was found, or one too close to tell
    NODE_LIMIT = 2
    TIME_LIMIT = 3
    INTERRUPTED = 4
    COLUMN_LIMIT = 5


@dataclass(frozen=True)
class Budget:
    """How much work a run may take, and how it is done.

    Attributes:
        max_nodes: nodes of the tree; the run stops at the first opportunity after that many.
        time_limit: seconds.
        n_threads: threads; the result does not depend on it.
        record_boxes: number of boxes into which the top of the tree is split and recorded for a replay.
        max_columns: of an enumeration.
        device: finds the device for what the first nodes leave open; None: the processor goes on.
        progress: told the bound and the nodes so far; True asks to stop.
    """

    max_nodes: int | None = None
    time_limit: float | None = None
    n_threads: int = 1
    record_boxes: int = 256
    max_columns: int = 100_000
    device: Callable[[], Device | None] | None = None
    progress: Callable[[float, int], bool] | None = None


@dataclass(frozen=True, eq=False)
class Column:
    """A set of items with c(S) and its reduced value c(S) - lambda(S)."""

    members: IntArray
    value: float
    reduced: float


@dataclass(frozen=True, eq=False)
class PricingVerdict:
    """Outcome of a pricing run; `bound` is valid for every admissible set whatever the status.

    `open` holds the boxes that were not searched to the end, None if they stayed on a device.
    """

    status: PricingStatus
    bound: float
    columns: tuple[Column, ...]
    nodes: int
    open: BoxList | None
    record: ReplayRecord


def certify(
    problem: WhitenedProblem,
    prices: ArrayLike,
    target: float,
    *,
    budget: Budget | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
    boxes: BoxList | None = None,
) -> PricingVerdict:
    """Prove c(S) - lambda(S) <= target for every admissible set, or return sets above it.

    Status, bound, node count and columns depend on ``max_nodes`` only; with a time limit or an interrupt they depend on
    when it struck. The empty set is included where it is admissible and no ``ranges`` or ``boxes`` are given.

    Args:
        problem: from `whiten`.
        prices: lambda, one per item.
        target: P.
        budget: limits and threads.
        ranges: sizes to look at instead of all admissible ones; at a limit of the sizes use the cuts of `size_ranges`.
        boxes: boxes to look at instead, such as the open boxes of a verdict with the same prices and target.
    """
    return _search(problem, prices, target, 0.0, budget or Budget(), ranges, boxes)


def enumerate_columns(
    problem: WhitenedProblem,
    prices: ArrayLike,
    target: float,
    slack: float,
    *,
    budget: Budget | None = None,
    ranges: Sequence[tuple[float, float]] | None = None,
    boxes: BoxList | None = None,
) -> PricingVerdict:
    """List every admissible set with c(S) - lambda(S) >= target - slack; no set may exceed the target.

    That premise is what `certify` proves; the rules that discard sets are shifted by the slack and rest on it. The
    list is complete if the status is CERTIFIED.
    """
    if not slack > 0.0:
        raise ValueError(f"slack must be positive, got {slack!r}.")
    return _search(problem, prices, target, slack, budget or Budget(), ranges, boxes)


def _search(
    problem: WhitenedProblem,
    prices: ArrayLike,
    target: float,
    slack: float,
    budget: Budget,
    ranges: Sequence[tuple[float, float]] | None,
    boxes: BoxList | None,
) -> PricingVerdict:
    lam = np.asarray(prices, dtype=np.float64)
    if lam.shape != problem.weight.shape or not np.isfinite(lam).all():
        raise ValueError(f"prices must be finite, one per item, shape {problem.weight.shape}, got shape {lam.shape}.")
    with_empty = boxes is None and ranges is None and problem.min_size <= 0.0
    if boxes is None:
        boxes = root_boxes(problem, size_ranges(problem) if ranges is None else ranges)
    # c(S) = c_whitened(S) - (v + n) log_det/2, up to `rounding`.
    offset = 0.5 * problem.v * problem.log_det
    whitened = lam + 0.5 * problem.log_det * problem.weight
    margin = problem.rounding + 4e-16 * (abs(offset) + float(np.abs(whitened).sum()) + abs(target))
    posed = KernelProblem(problem, whitened, target - slack + offset - margin, slack + 2.0 * margin if slack else 0.0)
    outcome = _in_slices(posed, boxes, budget, margin - offset)
    bound = outcome.bound - offset + margin
    members = _members(outcome.found)
    if with_empty:
        bound = max(bound, problem.empty_value())
        members.append(np.zeros(0, dtype=np.int64))
    columns = []
    for chosen in members:
        value = problem.value(chosen)
        reduced = value - float(lam[chosen].sum())
        if len(chosen) or reduced > target - slack:
            columns.append(Column(chosen, value, reduced))
    columns.sort(key=lambda column: (-column.reduced, column.members.tolist()))
    status = PricingStatus(outcome.status)
    if not slack and columns and status is PricingStatus.CERTIFIED:
        status = PricingStatus.VIOLATED  # by the empty set
    return PricingVerdict(status, bound, tuple(columns), outcome.nodes, outcome.open, outcome.record)


def _in_slices(posed: KernelProblem, boxes: BoxList, budget: Budget, shift: float) -> Outcome:
    """Search on until all is done or a limit strikes: the first nodes on the processor, the others on the device.

    `shift` turns bounds of the kernel into bounds of c(S) - lambda(S).
    """
    until = math.inf if budget.time_limit is None else time.perf_counter() + budget.time_limit
    outcome = _slice(posed, boxes, budget, FIRST_NODES, until)
    device: Device | None = None
    while outcome.status == NODE_LIMIT and outcome.open is not None:
        if budget.max_nodes is not None and outcome.nodes >= budget.max_nodes:
            break
        if budget.progress is not None and budget.progress(outcome.bound + shift, outcome.nodes):
            break
        if device is None and budget.device is not None and posed.fits_device:
            device = budget.device()
        if device is None:
            more = _slice(posed, outcome.open, budget, SLICE_NODES, until, outcome)
        else:
            more = _on_device(posed, outcome, device, budget, until, shift)
        outcome = _joined(outcome, more)
    return outcome


def _slice(
    posed: KernelProblem, boxes: BoxList, budget: Budget, size: int, until: float, before: Outcome | None = None
) -> Outcome:
    """The next slice on the processor; only the first one records its splits."""
    nodes, found = (0, 0) if before is None else (before.nodes, len(before.found))
    return posed.search(
        boxes,
        max_nodes=size if budget.max_nodes is None else min(size, budget.max_nodes - nodes),
        seconds=None if until == math.inf else max(0.0, until - time.perf_counter()),
        threads=budget.n_threads,
        opening=budget.record_boxes if before is None else 0,
        max_found=budget.max_columns - found,
    )


def _on_device(
    posed: KernelProblem, before: Outcome, device: Device, budget: Budget, until: float, shift: float
) -> Outcome:
    """What the processor left open, searched on the device; what stays open there is known by its bound only."""
    boxes = before.open
    assert boxes is not None
    stopped = NODE_LIMIT

    def should_stop(bound: float, nodes: int) -> bool:
        nonlocal stopped
        if time.perf_counter() >= until:
            stopped = TIME_LIMIT
            return True
        bound = max(bound, before.found_bound, posed.threshold)
        return budget.progress is not None and budget.progress(bound + shift, before.nodes + nodes)

    left = None if budget.max_nodes is None else budget.max_nodes - before.nodes
    result = Batch(posed.input, replace(boxes, origin=np.arange(len(boxes))), device).run(
        keep_going=posed.slack > 0.0,
        max_found=budget.max_columns - len(before.found),
        max_nodes=left,
        should_stop=should_stop,
    )
    if len(result.found) and not posed.slack:
        status = VIOLATED
    elif result.finished:
        status = CERTIFIED
    else:
        status = COLUMN_LIMIT if len(before.found) + len(result.found) >= budget.max_columns else stopped
    nothing = np.full(len(boxes), -1)
    record = ReplayRecord(
        boxes, nothing, nothing, nothing, nothing, np.zeros(len(boxes)), np.asarray(result.nodes[: len(boxes)])
    )
    bound = max(result.bound, posed.threshold)
    total = int(result.nodes.sum())
    return Outcome(status, bound, result.found_bound, total, result.found, None, record)


def _joined(first: Outcome, rest: Outcome) -> Outcome:
    """A search and its continuation: nodes are counted where the open boxes of the first one belong."""
    assert first.open is not None
    nodes = first.record.nodes.copy()
    np.add.at(nodes, first.open.origin, rest.record.below_roots())
    still_open = None if rest.open is None else replace(rest.open, origin=first.open.origin[rest.open.origin])
    return Outcome(
        rest.status,
        max(first.found_bound, rest.bound),
        max(first.found_bound, rest.found_bound),
        first.nodes + rest.nodes,
        np.concatenate([first.found, rest.found]),
        still_open,
        replace(first.record, nodes=nodes),
    )


def _members(found: NDArray[np.bool_]) -> list[IntArray]:
    """The sets found, each once (boxes share faces)."""
    masks = np.unique(found, axis=0) if len(found) else found
    return [np.flatnonzero(mask).astype(np.int64) for mask in masks]
