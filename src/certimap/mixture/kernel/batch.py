"""Pricing in batches: the newest open nodes are processed together, one thread each, on a GPU or in its CPU build.

The pool of open nodes is a stack of columns. A launch takes the newest nodes off it and puts what is left of them, in
a fixed order, back on top, so that the result does not depend on the device or the number of its threads.
"""

import ctypes
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from certimap.mixture.kernel.boxes import BoxList
from certimap.mixture.kernel.library import BatchShape, Pool, PricingInput, library
from certimap.mixture.kernel.masks import open_list, unpack_words
from certimap.mixture.prior import FloatArray

BATCH = 1 << 20  # nodes of a launch
POOL_SHARE = 0.6  # of the free memory
LEAST_ROOM = 4096
REPORT_EVERY = 0.5  # seconds
ENCORES = 20  # launches after the first set found: whoever wants one has use for some more
_EMPTY, _LEAF = -1, -2  # marks of slots, as in batch.hpp


class Device(Protocol):
    """Arrays and the kernel of one device."""

    arrays: ModuleType  # numpy or cupy

    def free_bytes(self) -> int:
        """Memory that a pool may take a share of."""

    def launch(self, batch: "Batch", offset: int, count: int) -> None:
        """Process nodes of `batch.pool` from `offset` on into the slots of `batch.slots`."""

    def to_host(self, array: Any) -> NDArray[Any]:
        """As a NumPy array."""


@dataclass(frozen=True, eq=False)
class BatchResult:
    """What a run leaves: bounds of all roots and of the sets found, nodes by origin, whether nothing is open."""

    bound: float
    found_bound: float
    found: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    finished: bool


class Columns:
    """Nodes as rows of doubles, mask words and marks on a device."""

    def __init__(self, xp: ModuleType, shape: BatchShape, words: int, capacity: int) -> None:
        self.capacity = capacity
        self.real = xp.empty((shape.real_rows, capacity))
        self.word = xp.empty((2 * words, capacity), dtype=np.uint32)
        self.mark = xp.empty((2, capacity), dtype=np.int32)

    def parts(self) -> tuple[Any, Any, Any]:
        return self.real, self.word, self.mark


class Batch:
    """One pricing problem with its pool of open nodes on a device."""

    def __init__(self, problem: PricingInput, roots: BoxList, device: Device, batch: int = BATCH) -> None:
        kernel = library()
        xp = device.arrays
        self.device = device
        self.dimension, self.form, self.groups = problem.dimension, problem.form, problem.groups
        self.items = problem.items
        self.words = (self.items + 31) // 32
        shape = BatchShape()
        kernel.certimap_batch_shape(self.dimension, self.form, self.groups, ctypes.byref(shape))
        description = np.zeros(shape.problem_bytes, dtype=np.uint8)
        table = np.zeros((self.items, shape.record))
        kernel.certimap_batch_describe(
            ctypes.byref(problem), ctypes.c_void_p(description.ctypes.data), ctypes.c_void_p(table.ctypes.data)
        )
        node_bytes = 8 * shape.real_rows + 8 * self.words + 8
        self._bound_row = 2 * (roots.lo.shape[1] + self.dimension)
        self.half = max(batch, 1)
        capacity = int(POOL_SHARE * device.free_bytes() / node_bytes) - 2 * self.half
        self.pool = Columns(xp, shape, self.words, max(capacity, len(roots) + LEAST_ROOM))
        self.slots = Columns(xp, shape, self.words, 2 * self.half)
        self.problem, self.table = xp.asarray(description), xp.asarray(table)
        self.nodes = xp.zeros(int(roots.origin.max(initial=0)) + 1, dtype=np.uint64)
        self.size = len(roots)
        self._load(problem, roots, table, shape)

    def run(
        self,
        *,
        keep_going: bool,
        max_found: int,
        max_nodes: int | None,
        should_stop: Callable[[float, int], bool],
    ) -> BatchResult:
        """Empty the pool, or stop early: soon after a set found unless `keep_going`, at a limit, told to, or full.

        `should_stop` is asked now and then, with the bound of what is open and the nodes so far.
        """
        found: list[NDArray[np.bool_]] = [np.zeros((0, self.items), dtype=np.bool_)]
        found_bound, count, encores = -math.inf, 0, 0
        reported = time.perf_counter()
        while 0 < self.size < self.pool.capacity and encores <= ENCORES and count < max_found:
            masks, best = self._step()
            encores += bool(count) and not keep_going
            found.append(masks)
            count += len(masks)
            found_bound = max(found_bound, best)
            late = time.perf_counter() - reported > REPORT_EVERY
            if not late and max_nodes is None:
                continue
            total = int(self.nodes.sum())
            if max_nodes is not None and total >= max_nodes:
                break
            if late:
                reported = time.perf_counter()
                if should_stop(max(found_bound, self._open_bound()), total):
                    break
        return BatchResult(
            bound=max(found_bound, self._open_bound()),
            found_bound=found_bound,
            found=np.concatenate(found),
            nodes=self.device.to_host(self.nodes).astype(np.int64),
            finished=self.size == 0,
        )

    def _step(self) -> tuple[NDArray[np.bool_], float]:
        """One launch; the sets found in it and the largest of their bounds."""
        xp = self.device.arrays
        count = min(self.size, self.half, self.pool.capacity - self.size)  # each may leave two
        offset = self.size - count
        self.device.launch(self, offset, count)
        mark = self.slots.mark[0]
        first, second = mark[:count], mark[self.half : self.half + count]
        kept = xp.concatenate([xp.flatnonzero(first >= 0), self.half + xp.flatnonzero(second >= 0)])
        leaves = xp.flatnonzero(first == _LEAF)
        self.size = offset + len(kept)
        for target, source in zip(self.pool.parts(), self.slots.parts(), strict=True):
            target[:, offset : self.size] = source[:, kept]
        if not len(leaves):
            return np.zeros((0, self.items), dtype=np.bool_), -math.inf
        words = self.device.to_host(self.slots.word[: self.words, leaves])
        best = float(self.slots.real[self._bound_row, leaves].max())
        return unpack_words(words.T, self.items), best

    def _open_bound(self) -> float:
        return float(self.pool.real[self._bound_row, : self.size].max()) if self.size else -math.inf

    def _load(self, problem: PricingInput, roots: BoxList, table: FloatArray, shape: BatchShape) -> None:
        """Roots with the statistics of the items inside them, made on the CPU."""
        staging = Columns(np, shape, self.words, max(len(roots), 1))
        listed, keep = open_list(roots)
        library().certimap_batch_load(
            ctypes.byref(problem),
            ctypes.byref(listed),
            ctypes.c_void_p(table.ctypes.data),
            ctypes.byref(pool_of(staging)),
        )
        del keep
        for target, source in zip(self.pool.parts(), staging.parts(), strict=True):
            target[:, : self.size] = self.device.arrays.asarray(source[:, : self.size])


class HostDevice:
    """The CPU build of the batch: the same arithmetic, one node after the other."""

    arrays = np

    def __init__(self, memory: int = 1 << 28) -> None:
        self._memory = memory

    def free_bytes(self) -> int:
        return self._memory

    def launch(self, batch: Batch, offset: int, count: int) -> None:
        library().certimap_batch_step(
            batch.dimension,
            batch.form,
            batch.groups,
            ctypes.c_void_p(batch.problem.ctypes.data),
            ctypes.c_void_p(batch.table.ctypes.data),
            batch.items,
            ctypes.byref(pool_of(batch.pool)),
            ctypes.c_int64(offset),
            ctypes.c_int64(count),
            ctypes.byref(pool_of(batch.slots)),
            ctypes.c_void_p(batch.nodes.ctypes.data),
        )

    def to_host(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)


def pool_of(columns: Columns) -> Pool:
    """The C structure of columns in host memory."""
    return Pool(columns.real.ctypes.data, columns.word.ctypes.data, columns.mark.ctypes.data, columns.capacity)
