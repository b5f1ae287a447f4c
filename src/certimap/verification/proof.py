"""What a proof check returns, and by how much a claim may fall short of what it proves."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Claims are made in float64 by sums over thousands of terms; the verifier repeats them with its own rounding. A claimed
# bound may therefore lie below the derived one by this much, relative to max(1, |bound|). The report states the derived
# bound, which needs no allowance.
ALLOWANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """A derived upper bound, and what was looked at; `trusted` names numbers that came from outside."""

    upper_bound: float
    nodes: int
    leaves: int
    cuts: int
    trusted: tuple[str, ...] = ()


def allowed(claim: float) -> float:
    """The largest derived bound that supports the claimed one."""
    return claim + ALLOWANCE * max(1.0, abs(claim)) if math.isfinite(claim) else claim
