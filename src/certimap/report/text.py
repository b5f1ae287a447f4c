"""How numbers are written for readers."""

from __future__ import annotations

import math


def percent(relative: float) -> str:
    """A relative gap in percent, short enough for a column."""
    value = 100.0 * relative
    if math.isnan(value) or math.isinf(value):
        return "-"
    if value >= 1e5:
        return "large"
    if value == 0.0 or value >= 0.01:
        return f"{value:.2f} %"
    return f"{value:.0e} %"


def number(value: float) -> str:
    """A value or bound; - where there is none."""
    if value == -math.inf:
        return "-"
    if math.isinf(value):
        return "inf"
    return f"{value:z.4f}" if abs(value) < 1e6 else f"{value:.5e}"


def plural(count: int, noun: str) -> str:
    """`1 leaf`, `2 leaves`."""
    many = {"leaf": "leaves"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else many}"
