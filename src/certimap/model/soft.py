"""Soft constraints: a weight is paid where the constraint is violated, exactly in value and bound."""

from __future__ import annotations

from dataclasses import dataclass

from certimap.model.checks import not_negative
from certimap.model.constraints import no_constraint
from certimap.model.expressions import Constraint


@dataclass(frozen=True)
class Soft:
    """-weight * [constraint violated]."""

    constraint: Constraint
    weight: float


def soft(constraint: Constraint, weight: float) -> Soft:
    """Turn a constraint into a penalty: the objective loses `weight` where the constraint does not hold."""
    if not isinstance(constraint, Constraint):
        raise no_constraint("soft", constraint)
    return Soft(constraint, not_negative(f"soft({constraint.name}): the weight", weight))
