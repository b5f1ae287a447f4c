"""Certified pricing of full-covariance clusters: max over sets S of c(S) - lambda(S), by the compiled kernel.

`whiten` brings a problem into the kernel's form (W0 = I), `certify` proves that no admissible set is worth more than a
target or finds one that is, `enumerate_columns` lists every set within a slack of it. The bound of a verdict holds at
any stop, a Ctrl-C included. The mathematics stands in the headers: `kernel/classify.hpp` (which items are in or out),
`kernel/contract.hpp` (shrinking a box), `kernel/bound.hpp` (the bound), `kernel/sizes.hpp` (limits on the size).
"""

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.kernel.batch import open_list
from certimap.mixture.kernel.boxes import BoxList, root_boxes, size_ranges
from certimap.mixture.kernel.library import Limits, OpenList, PricingInput, SplitRecord, Summary, library
from certimap.mixture.kernel.whitening import WhitenedProblem, cluster_axes, whiten
from certimap.mixture.prior import FloatArray

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

_MAX_ROUNDS = 3  # of contraction and bounding per node


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
    """

    max_nodes: int | None = None
    time_limit: float | None = None
    n_threads: int = 1
    record_boxes: int = 256
    max_columns: int = 100_000


@dataclass(frozen=True, eq=False)
class Column:
    """A set of items with c(S) and its reduced value c(S) - lambda(S)."""

    members: IntArray
    value: float
    reduced: float


@dataclass(frozen=True, eq=False)
class ReplayRecord:
    """The recorded top of the pricing tree; entry k < len(roots) is root k.

    Arrays over entries: parent (-1 for roots), side (0 lower or inside, 1 upper or outside), coordinate of the split
    (-1 an item, -2 not split), item, cut, and the number of nodes searched below.
    """

    roots: BoxList
    parent: IntArray
    side: IntArray
    coordinate: IntArray
    item: IntArray
    cut: FloatArray
    nodes: IntArray


@dataclass(frozen=True, eq=False)
class PricingVerdict:
    """Outcome of a pricing run; `bound` is valid for every admissible set whatever the status."""

    status: PricingStatus
    bound: float
    columns: tuple[Column, ...]
    nodes: int
    open: BoxList
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
    run = _Run(
        problem, whitened, target - slack + offset - margin, slack + 2.0 * margin if slack else 0.0, boxes, budget
    )
    summary = run.execute()
    bound = summary.bound - offset + margin
    members = run.columns(summary)
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
    status = PricingStatus(summary.status)
    if not slack and columns and status is PricingStatus.CERTIFIED:
        status = PricingStatus.VIOLATED  # by the empty set
    return PricingVerdict(status, bound, tuple(columns), summary.nodes, run.open(summary), run.record(summary))


class _Run:
    """One call of the kernel and the arrays that it reads and fills."""

    def __init__(
        self,
        problem: WhitenedProblem,
        prices: FloatArray,
        threshold: float,
        slack: float,
        boxes: BoxList,
        budget: Budget,
    ) -> None:
        self._boxes = boxes
        self._items = len(prices)
        self._words = (self._items + 63) // 64
        self._kernel = library()
        self._handle = ctypes.c_void_p()
        self._stop = ctypes.c_int(0)
        rows, columns = np.tril_indices(problem.dimension)
        ends = np.array([*problem.conflicts, *((j, i) for i, j in problem.conflicts)], dtype=np.int32).reshape(-1, 2)
        ends = np.unique(ends, axis=0)
        start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=self._items))])
        self._arrays = {
            "y": np.ascontiguousarray(problem.mean.T),
            "price": np.ascontiguousarray(prices),
            "weight": np.ascontiguousarray(problem.weight),
            "factor": np.ascontiguousarray(problem.factor[:, rows, columns].T),
            "prior_mean": np.ascontiguousarray(problem.prior_mean),
        }
        if len(ends):
            self._arrays["conflict_start"] = start.astype(np.int32)
            self._arrays["conflict_items"] = np.ascontiguousarray(ends[:, 1])
        self._input = PricingInput(
            dimension=problem.dimension,
            items=self._items,
            groups=int(not problem.plain),
            integral=int(problem.integral),
            flips=int(problem.plain and problem.v >= problem.b0),
            max_rounds=_MAX_ROUNDS,
            a0=problem.a0,
            b0=problem.b0,
            v=problem.v,
            Nt=problem.Nt,
            target=threshold,
            slack=slack,
            size_min=problem.min_size if problem.min_size > 0.0 else -1e300,
            size_max=min(problem.max_size, 1e300),
            **{name: array.ctypes.data for name, array in self._arrays.items()},
        )
        self._limits = Limits(
            max_nodes=-1 if budget.max_nodes is None else budget.max_nodes,
            seconds=-1.0 if budget.time_limit is None else budget.time_limit,
            interrupt=ctypes.addressof(self._stop),
            threads=budget.n_threads,
            opening=budget.record_boxes,
            enumerate=int(slack > 0.0),
            max_found=budget.max_columns,
        )

    def execute(self) -> Summary:
        """Run to the end; on Ctrl-C the kernel is told to stop and what it has is kept."""
        roots, keep = open_list(self._boxes)
        worker = threading.Thread(target=self._call, args=(roots,))
        worker.start()
        while worker.is_alive():
            try:
                worker.join()
            except KeyboardInterrupt:
                self._stop.value = 1
        del keep
        summary = Summary()
        self._kernel.certimap_pricing_summary(self._handle, ctypes.byref(summary))
        return summary

    def _call(self, roots: OpenList) -> None:
        self._handle.value = self._kernel.certimap_pricing_run(
            ctypes.byref(self._input), ctypes.byref(roots), ctypes.byref(self._limits)
        )

    def __del__(self) -> None:
        if self._handle:
            self._kernel.certimap_pricing_free(self._handle)

    def columns(self, summary: Summary) -> list[IntArray]:
        """Members of the sets found, each set once (boxes share faces)."""
        values = np.zeros(summary.found)
        words = np.zeros((summary.found, self._words), dtype=np.uint64)
        self._kernel.certimap_pricing_found(
            self._handle, ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(words.ctypes.data)
        )
        masks = np.unique(self._unpack(words), axis=0) if summary.found else np.zeros((0, self._items), dtype=np.bool_)
        return [np.flatnonzero(mask).astype(np.int64) for mask in masks]

    def open(self, summary: Summary) -> BoxList:
        """What was left open."""
        width = self._boxes.lo.shape[1]
        lo, hi, bound = np.zeros((summary.open, width)), np.zeros((summary.open, width)), np.zeros(summary.open)
        empty = np.zeros((summary.open, self._items), dtype=np.bool_)
        listed, arrays = open_list(BoxList(lo, hi, bound, empty, empty, np.zeros(summary.open, dtype=np.int64)))
        self._kernel.certimap_pricing_open(self._handle, ctypes.byref(listed))
        *_, inside, free, origin = arrays
        return BoxList(lo, hi, bound, self._unpack(inside), self._unpack(free), origin.astype(np.int64))

    def record(self, summary: Summary) -> ReplayRecord:
        """The recorded splits."""
        entries = (SplitRecord * summary.record)()
        self._kernel.certimap_pricing_record(self._handle, entries)
        table = np.ctypeslib.as_array(entries) if summary.record else np.zeros(0, dtype=np.dtype(SplitRecord))
        whole = {name: table[name].astype(np.int64) for name in ("parent", "side", "coordinate", "item", "nodes")}
        return ReplayRecord(roots=self._boxes, cut=table["cut"].copy(), **whole)

    def _unpack(self, words: NDArray[np.generic]) -> NDArray[np.bool_]:
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self._items].astype(np.bool_)
