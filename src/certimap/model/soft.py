"""Soft constraints: a weight is paid where the constraint is violated, exactly in value and bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

from certimap.model.errors import ModelError
from certimap.model.expressions import Constraint


@dataclass(frozen=True)
class Soft:
    """-weight * [constraint violated]."""

    constraint: Constraint
    weight: float


def soft(constraint: Constraint, weight: float) -> Soft:
    """Turn a constraint into a penalty: the objective loses `weight` where the constraint does not hold."""
    if not isinstance(constraint, Constraint):
        raise ModelError(f"soft takes a constraint such as must_link(a, b), got {constraint!r}")
    if not (weight >= 0 and math.isfinite(weight)):
        raise ModelError(f"soft({constraint.name}): the weight must be a finite number >= 0, got {weight!r}")
    return Soft(constraint, float(weight))
