"""Boxes and cuts: what engines and oracles exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Box:
    """lower <= y <= upper over all columns of the graph."""

    lower: Floats
    upper: Floats

    def part(self, columns: Ints) -> tuple[Floats, Floats]:
        return self.lower[columns], self.upper[columns]


@dataclass(frozen=True)
class Cuts:
    """Cuts on terms of one batch: theta_i(x) <= u.x + h, or 0 <= u.x + h where `feasibility` (theta_i = -inf beyond).

    `term[k]` is the position in the batch, `u[k]` has one entry per scope column. A `local` cut holds only on the
    box it was made for, restricted to the term's scope. `witness[k]`, for families that need it, is the point whose
    tangent the cut is: a verifier cannot recover it from u and h alone.
    """

    term: Ints
    u: Floats
    h: Floats
    local: NDArray[np.bool_]
    feasibility: NDArray[np.bool_]
    witness: Floats | None = None

    def __len__(self) -> int:
        return len(self.term)

    @staticmethod
    def none(width: int) -> Cuts:
        flags = np.zeros(0, dtype=bool)
        return Cuts(np.zeros(0, dtype=np.int64), np.zeros((0, width)), np.zeros(0), flags, flags)

    @staticmethod
    def of(
        term: Ints,
        u: Floats,
        h: Floats,
        *,
        local: bool | NDArray[np.bool_] = False,
        feasibility: bool = False,
        witness: Floats | None = None,
    ) -> Cuts:
        """Cuts with flags shared by all of them (`local` may also differ from cut to cut)."""
        flags = np.ones(len(term), dtype=bool)
        return Cuts(np.asarray(term, dtype=np.int64), u, h, flags & local, flags & feasibility, witness)

    def with_exclusions(self) -> Cuts:
        """The same cuts for a linear program: h = -inf, of a term without any point, becomes the exclusion 0 <= -1."""
        nowhere = self.h == -np.inf
        if not nowhere.any():
            return self
        u, h = np.where(nowhere[:, None], 0.0, self.u), np.where(nowhere, -1.0, self.h)
        return replace(self, u=u, h=h, feasibility=self.feasibility | nowhere)

    @staticmethod
    def join(parts: list[Cuts], width: int) -> Cuts:
        """All cuts in order; where only some have witnesses, the rows of the others are NaN."""
        if not parts:
            return Cuts.none(width)
        witness = None
        if any(p.witness is not None for p in parts):
            witness = np.concatenate([np.full(p.u.shape, np.nan) if p.witness is None else p.witness for p in parts])
        return Cuts(
            np.concatenate([p.term for p in parts]),
            np.concatenate([p.u for p in parts]),
            np.concatenate([p.h for p in parts]),
            np.concatenate([p.local for p in parts]),
            np.concatenate([p.feasibility for p in parts]),
            witness,
        )
