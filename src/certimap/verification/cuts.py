"""The cuts of a certificate: checked against their blocks, with constants derived anew when a leaf uses them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import CertificateError, CutRecord
from certimap.verification.conjugates import TRUSTED, Cut, conjugate
from certimap.verification.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Box:
    """lower <= y <= upper over all columns of the graph."""

    lower: Floats
    upper: Floats


class CutTable:
    """All cuts, flattened: entries starts[k] .. starts[k+1] of `columns`, `u`, `lower`, `upper` belong to cut k."""

    def __init__(self, records: tuple[CutRecord, ...], problem: Problem) -> None:
        self.problem = problem
        self.records = records
        parts = [_checked(k, record, problem) for k, record in enumerate(records)]
        self.starts = np.cumsum([0, *(len(p.u) for p in parts)])
        self.columns = np.concatenate([np.zeros(0, dtype=np.int64), *(problem.scopes[r.block] for r in records)])
        self.u = np.concatenate([np.zeros(0), *(p.u for p in parts)])
        self.lower = np.concatenate([np.zeros(0), *(p.lower for p in parts)])
        self.upper = np.concatenate([np.zeros(0), *(p.upper for p in parts)])
        self.block = np.array([r.block for r in records], dtype=np.int64)
        self.feasibility = np.array([r.feasibility for r in records], dtype=bool)
        self._cuts = parts
        self._h = np.full(len(records), np.nan)
        self._constants: dict[tuple[int, bytes, bytes], float] = {}
        self.trusted: set[str] = set()

    @property
    def derived(self) -> int:
        """How many constants have been derived."""
        return int((~np.isnan(self._h)).sum())

    def entries(self, cuts: Ints) -> tuple[Ints, Ints]:
        """For every entry of the given cuts: its cut (as a position in `cuts`) and its place in the flat arrays."""
        lengths = self.starts[cuts + 1] - self.starts[cuts]
        owner = np.repeat(np.arange(len(cuts)), lengths)
        before = np.cumsum(lengths) - lengths
        return owner, np.arange(len(owner)) - before[owner] + self.starts[cuts][owner]

    def check_boxes(self, cuts: Ints, box: Box, leaf: int) -> None:
        """A cut derived on a box says nothing outside it."""
        owner, flat = self.entries(cuts)
        columns = self.columns[flat]
        inside = (box.lower[columns] >= self.lower[flat]) & (box.upper[columns] <= self.upper[flat])
        if not inside.all():
            k = int(cuts[owner[np.argmin(inside)]])
            raise CertificateError(f"leaf {leaf}: uses cut {k} outside the box that the cut holds on")

    def constants(self, cuts: Ints) -> Floats:
        """h of the given cuts, derived from the model."""
        for k in cuts[np.isnan(self._h[cuts])].tolist():
            self._h[k] = self._derive(int(self.block[k]), self._cuts[k])
        return self._h[cuts]

    def upper_bound(self, block: int, box: Box) -> float:
        """A bound of the block's term on the box: the cut without slope."""
        columns = self.problem.scopes[block]
        cut = Cut(np.zeros(len(columns)), box.lower[columns], box.upper[columns])
        key = (block, cut.lower.tobytes(), cut.upper.tobytes())
        if key not in self._constants:
            self._constants[key] = self._derive(block, cut)
        return self._constants[key]

    def _derive(self, block: int, cut: Cut) -> float:
        term = self.problem.terms[block]
        if term.kind in TRUSTED:
            self.trusted.add(f"{TRUSTED[term.kind]} ({term.label()})")
        return conjugate(term, cut)


def _checked(k: int, record: CutRecord, problem: Problem) -> Cut:
    """The cut within the domain's box, after its arrays have been checked for shape and content."""
    if not isinstance(record.block, int) or not 0 <= record.block < len(problem.terms):
        raise CertificateError(f"cut {k}: there is no block {record.block!r}")
    scope = problem.scopes[record.block]
    if not np.array_equal(np.asarray(record.columns), scope):
        raise CertificateError(f"cut {k}: its columns are not the scope of block {record.block}")
    u = finite(f"cut {k}: u", record.u, len(scope))
    low, high = problem.graph.lower[scope], problem.graph.upper[scope]
    if (record.lower is None) != (record.upper is None):
        raise CertificateError(f"cut {k}: its box has one side only")
    if record.lower is not None and record.upper is not None:
        low = np.maximum(low, finite(f"cut {k}: lower", record.lower, len(scope)))
        high = np.minimum(high, finite(f"cut {k}: upper", record.upper, len(scope)))
    witness = None if record.witness is None else finite(f"cut {k}: witness", record.witness, len(scope))
    return Cut(u, low, high, bool(record.feasibility), witness)


def finite(what: str, values: object, length: int) -> Floats:
    """An array of `length` finite numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise CertificateError(f"{what} is not an array of numbers") from None
    if array.shape != (length,) or not np.isfinite(array).all():
        raise CertificateError(f"{what} is not an array of {length} finite numbers")
    return array
