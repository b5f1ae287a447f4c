"""What a proof check is asked for and returns, and by how much a claim may fall short of what it proves."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Claims are made in float64 by sums over thousands of terms; the verifier repeats them with its own rounding. A claimed
# bound may therefore lie below the derived one by this much, relative to max(1, |bound|). The report states the derived
# bound, which needs no allowance.
ALLOWANCE = 1e-9


@dataclass(frozen=True)
class Effort:
    """How much of a long pricing proof is searched again: all of it, or a random sample drawn with `seed`."""

    full: bool
    seed: int


@dataclass(frozen=True)
class Replay:
    """Pricing proofs as pieces: the boxes that the certificate records, and those that were searched again.

    `nodes` are the solver's for all boxes, `replayed_nodes` for the ones replayed, `visited` the verifier's own. The
    sample is drawn uniformly over boxes with `seed`. What was not replayed rests on the solver's kernel.
    """

    boxes: int
    replayed: int
    nodes: int
    replayed_nodes: int
    visited: int
    seed: int

    @property
    def whole(self) -> bool:
        return self.replayed == self.boxes

    @property
    def share(self) -> float:
        """Part of the solver's nodes that the replayed boxes hold."""
        return 1.0 if self.whole else self.replayed_nodes / max(1, self.nodes)


@dataclass(frozen=True)
class RankingProof:
    """Values of the ranked partitions, the best first; no other partition has a value above `others`."""

    values: tuple[float, ...]
    others: float


@dataclass(frozen=True)
class Proof:
    """A derived upper bound, and what was looked at; `trusted` names numbers that came from outside.

    `value` is a number that the point's exact value is not below, where the check has its own arithmetic for it.
    """

    upper_bound: float
    nodes: int
    leaves: int
    cuts: int
    trusted: tuple[str, ...] = ()
    value: float | None = None
    replay: Replay | None = None
    ranking: RankingProof | None = None
    moves: int = 0  # no clustering with so many moved points is better


def allowed(claim: float) -> float:
    """The largest derived bound that supports the claimed one."""
    return claim + ALLOWANCE * max(1.0, abs(claim)) if math.isfinite(claim) else claim
