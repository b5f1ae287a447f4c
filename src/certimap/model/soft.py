"""Soft constraints: a weight is paid where the constraint is violated, exactly in value and bound."""

from __future__ import annotations

from dataclasses import dataclass

from certimap.model.checks import not_negative
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
    return Soft(constraint, not_negative(f"soft({constraint.name}): the weight", weight))
