"""Checks of plain numbers, whose errors name what the number is for, what is allowed and what was given."""

from __future__ import annotations

import math
import numbers
from typing import Any

from certimap.model.errors import ModelError


def is_finite(given: Any) -> bool:
    """Whether this is a real number, neither infinite nor NaN."""
    return isinstance(given, numbers.Real) and math.isfinite(given)


def finite(what: str, given: Any) -> float:
    if not is_finite(given):
        raise ModelError(f"{what} must be finite, got {given!r}")
    return float(given)


def positive(what: str, given: Any) -> float:
    if not (is_finite(given) and given > 0):
        raise ModelError(f"{what} must be a positive finite number, got {given!r}")
    return float(given)


def not_negative(what: str, given: Any, why: str = "") -> float:
    if not (is_finite(given) and given >= 0):
        raise ModelError(f"{what} must be a finite number >= 0{why}, got {given!r}")
    return float(given)
