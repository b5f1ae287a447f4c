"""Checks of plain numbers, whose errors name what the number is for, what is allowed and what was given."""

from __future__ import annotations

import math
import numbers
from typing import Any

from certimap.model.errors import ModelError

LARGEST = 1e15  # sums of larger numbers have no digits after the point in float64


def is_finite(given: Any) -> bool:
    """Whether this is a real number, neither infinite nor NaN nor beyond what float64 can add up."""
    return isinstance(given, numbers.Real) and _size(given) <= LARGEST


def shown(given: Any) -> str:
    """What was given, for an error; with the limit where the number is finite but too large."""
    too_large = isinstance(given, numbers.Real) and LARGEST < _size(given) < math.inf
    return f"{given!r} (the limit is {LARGEST:g}; to exclude states use -inf)" if too_large else repr(given)


def _size(given: numbers.Real) -> Any:
    return abs(given)


def finite(what: str, given: Any) -> float:
    if not is_finite(given):
        raise ModelError(f"{what} must be finite, got {shown(given)}")
    return float(given)


def positive(what: str, given: Any) -> float:
    if not (is_finite(given) and given > 0):
        raise ModelError(f"{what} must be a positive finite number, got {shown(given)}")
    return float(given)


def not_negative(what: str, given: Any, why: str = "") -> float:
    if not (is_finite(given) and given >= 0):
        raise ModelError(f"{what} must be a finite number >= 0{why}, got {shown(given)}")
    return float(given)
