"""One pricing problem in the kernel's form, and a search of boxes on the processor's cores."""

import ctypes
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.clusters import IntArray
from certimap.mixture.kernel.boxes import BoxList
from certimap.mixture.kernel.library import Limits, OpenList, PricingInput, SplitRecord, Summary, library
from certimap.mixture.kernel.masks import open_list, unpack_words
from certimap.mixture.kernel.whitening import FORMS, WhitenedProblem
from certimap.mixture.prior import FloatArray

_MAX_ROUNDS = 3  # of contraction and bounding per node

# How a search ended, as in cpu_driver.hpp.
CERTIFIED, VIOLATED, NODE_LIMIT, TIME_LIMIT, INTERRUPTED, COLUMN_LIMIT = range(6)


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

    def below_roots(self) -> IntArray:
        """Nodes searched below every root."""
        total = self.nodes.copy()
        for k in range(len(self.parent) - 1, len(self.roots) - 1, -1):
            total[self.parent[k]] += total[k]
        return total[: len(self.roots)]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search leaves: `bound` holds for all its boxes, `found_bound` for the sets found (rows of `found`).

    `open` is None where open boxes stayed on a device.
    """

    status: int
    bound: float
    found_bound: float
    nodes: int
    found: NDArray[np.bool_]
    open: BoxList | None
    record: ReplayRecord


class KernelProblem:
    """Prices and a threshold on a whitened problem; sets within `slack` above the threshold are listed if it is > 0."""

    def __init__(self, problem: WhitenedProblem, prices: FloatArray, threshold: float, slack: float) -> None:
        self.threshold, self.slack = threshold, slack
        self.items = len(prices)
        # The form for one thread per node has no room for conflicts.
        self.fits_device = not problem.conflicts
        rows, columns = np.tril_indices(problem.dimension)
        ends = np.array([*problem.conflicts, *((j, i) for i, j in problem.conflicts)], dtype=np.int32).reshape(-1, 2)
        ends = np.unique(ends, axis=0)
        start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=self.items))])
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
        self.input = PricingInput(
            dimension=problem.dimension,
            form=FORMS.index(problem.covariance_type),
            items=self.items,
            groups=int(not problem.plain),
            integral=int(problem.integral),
            flips=int(problem.covariance_type == "full" and problem.plain and problem.v >= problem.b0),
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

    def search(
        self,
        boxes: BoxList,
        *,
        max_nodes: int | None,
        seconds: float | None,
        threads: int,
        opening: int,
        max_found: int,
    ) -> Outcome:
        """Search the boxes; the top of the tree is recorded until there are `opening` open boxes.

        On Ctrl-C the kernel is told to stop and what it has is kept.
        """
        run = _Run(self, boxes, max_nodes, seconds, threads, opening, max_found)
        return run.outcome()


class _Run:
    """One call of the kernel and the arrays that it reads and fills."""

    def __init__(
        self,
        problem: KernelProblem,
        boxes: BoxList,
        max_nodes: int | None,
        seconds: float | None,
        threads: int,
        opening: int,
        max_found: int,
    ) -> None:
        self._problem = problem
        self._boxes = boxes
        self._words = (problem.items + 63) // 64
        self._kernel = library()
        self._handle = ctypes.c_void_p()
        self._stop = ctypes.c_int(0)
        self._limits = Limits(
            max_nodes=-1 if max_nodes is None else max_nodes,
            seconds=-1.0 if seconds is None else seconds,
            interrupt=ctypes.addressof(self._stop),
            threads=threads,
            opening=opening,
            enumerate=int(problem.slack > 0.0),
            max_found=max_found,
        )

    def outcome(self) -> Outcome:
        """Run to the end and collect what there is."""
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
        found, bounds = self._found(summary)
        return Outcome(
            summary.status,
            summary.bound,
            float(bounds.max(initial=-np.inf)),
            summary.nodes,
            found,
            self._open(summary),
            self._record(summary),
        )

    def _call(self, roots: OpenList) -> None:
        self._handle.value = self._kernel.certimap_pricing_run(
            ctypes.byref(self._problem.input), ctypes.byref(roots), ctypes.byref(self._limits)
        )

    def __del__(self) -> None:
        if self._handle:
            self._kernel.certimap_pricing_free(self._handle)

    def _found(self, summary: Summary) -> tuple[NDArray[np.bool_], FloatArray]:
        bounds = np.zeros(summary.found)
        words = np.zeros((summary.found, self._words), dtype=np.uint64)
        self._kernel.certimap_pricing_found(
            self._handle, ctypes.c_void_p(bounds.ctypes.data), ctypes.c_void_p(words.ctypes.data)
        )
        return unpack_words(words, self._problem.items), bounds

    def _open(self, summary: Summary) -> BoxList:
        count, width, items = summary.open, self._boxes.lo.shape[1], self._problem.items
        lo, hi, bound = np.zeros((count, width)), np.zeros((count, width)), np.zeros(count)
        empty = np.zeros((count, items), dtype=np.bool_)
        listed, arrays = open_list(BoxList(lo, hi, bound, empty, empty, np.zeros(count, dtype=np.int64)))
        self._kernel.certimap_pricing_open(self._handle, ctypes.byref(listed))
        *_, inside, free, origin = arrays
        return BoxList(lo, hi, bound, unpack_words(inside, items), unpack_words(free, items), origin.astype(np.int64))

    def _record(self, summary: Summary) -> ReplayRecord:
        entries = (SplitRecord * summary.record)()
        self._kernel.certimap_pricing_record(self._handle, entries)
        table = np.ctypeslib.as_array(entries) if summary.record else np.zeros(0, dtype=np.dtype(SplitRecord))
        whole = {name: table[name].astype(np.int64) for name in ("parent", "side", "coordinate", "item", "nodes")}
        return ReplayRecord(roots=self._boxes, cut=table["cut"].copy(), **whole)
