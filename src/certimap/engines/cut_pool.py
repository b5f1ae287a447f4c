"""The pool of all cuts made during a solve, on flat arrays; master rows and certificates refer to it by position."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CutRecord
from certimap.graph.graph import FactorBatch
from certimap.oracles.protocol import Box, Cuts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scalar = TypeVar("Scalar", np.float64, np.int64, np.bool_)


class Growing(Generic[Scalar]):
    """An array that grows at the end in amortised constant time."""

    def __init__(self, dtype: type[Scalar]) -> None:
        self._data: NDArray[Scalar] = np.empty(1024, dtype=dtype)
        self.size = 0

    def extend(self, values: NDArray[Scalar]) -> None:
        needed = self.size + len(values)
        if needed > len(self._data):
            grown: NDArray[Scalar] = np.empty(max(needed, 2 * len(self._data)), dtype=self._data.dtype)
            grown[: self.size] = self._data[: self.size]
            self._data = grown
        self._data[self.size : needed] = values
        self.size = needed

    @property
    def view(self) -> NDArray[Scalar]:
        return self._data[: self.size]


class CutPool:
    """Cut k: columns start[k]:start[k+1] of the flat arrays; its block, constant h, kind and (if local) scope box."""

    def __init__(self) -> None:
        self._start = Growing(np.int64)
        self._start.extend(np.zeros(1, dtype=np.int64))
        self._column, self._u = Growing(np.int64), Growing(np.float64)
        self._lower, self._upper = Growing(np.float64), Growing(np.float64)
        self._block, self._h = Growing(np.int64), Growing(np.float64)
        self._local, self._feasibility = Growing(np.bool_), Growing(np.bool_)
        self._witness: dict[int, Floats] = {}

    def __len__(self) -> int:
        return self._block.size

    @property
    def start(self) -> Ints:
        return self._start.view

    @property
    def column(self) -> Ints:
        return self._column.view

    @property
    def u(self) -> Floats:
        return self._u.view

    @property
    def h(self) -> Floats:
        return self._h.view

    @property
    def block(self) -> Ints:
        return self._block.view

    @property
    def feasibility(self) -> NDArray[np.bool_]:
        return self._feasibility.view

    @property
    def local(self) -> NDArray[np.bool_]:
        return self._local.view

    def add(self, batch: FactorBatch, cuts: Cuts, box: Box) -> Ints:
        """Append cuts made on `box`; returns their positions."""
        first, count, width = len(self), len(cuts), batch.scope.shape[1]
        columns = batch.scope[cuts.term].ravel()
        self._start.extend(self.start[-1] + width * np.arange(1, count + 1))
        self._column.extend(columns)
        self._u.extend(cuts.u.ravel())
        self._lower.extend(box.lower[columns])
        self._upper.extend(box.upper[columns])
        self._block.extend(batch.blocks[cuts.term])
        self._h.extend(cuts.h)
        self._local.extend(cuts.local)
        self._feasibility.extend(cuts.feasibility)
        if cuts.witness is not None:
            self._witness.update({first + k: w for k, w in enumerate(cuts.witness)})
        return np.arange(first, first + count)

    def entries(self, cuts: Ints) -> tuple[Ints, Ints]:
        """For the chosen cuts: (which of them, flat position) of every coefficient."""
        counts = self.start[cuts + 1] - self.start[cuts]
        owner = np.repeat(np.arange(len(cuts)), counts)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return owner, np.repeat(self.start[cuts], counts) + offset

    def valid_on(self, cuts: Ints, box: Box) -> NDArray[np.bool_]:
        """Which of the chosen cuts hold on the whole box: global ones, and local ones made on a box around it."""
        owner, flat = self.entries(cuts)
        columns = self.column[flat]
        outside = (box.lower[columns] < self._lower.view[flat]) | (box.upper[columns] > self._upper.view[flat])
        escapes = np.bincount(owner, outside, minlength=len(cuts)) > 0
        return np.asarray(~self.local[cuts] | ~escapes)

    def record(self, cut: int) -> CutRecord:
        """The cut as it stands in a certificate."""
        part = slice(int(self.start[cut]), int(self.start[cut + 1]))
        local = bool(self.local[cut])
        return CutRecord(
            block=int(self.block[cut]),
            columns=self.column[part].copy(),
            u=self.u[part].copy(),
            h=float(self.h[cut]),
            feasibility=bool(self.feasibility[cut]),
            lower=np.array(self._lower.view[part]) if local else None,
            upper=np.array(self._upper.view[part]) if local else None,
            witness=self._witness.get(cut),
        )
