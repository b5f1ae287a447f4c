"""The gap badge: status and gap as a small label for notebooks and reports."""

from __future__ import annotations

import math
from html import escape

from certimap.report.text import percent
from certimap.results import Result, Status

# White text on each has a contrast of at least 4.5; the words say the same without colour.
COLOURS = {
    Status.OPTIMAL: "#1b6e3c",
    Status.LOCALLY_OPTIMAL: "#1f5f99",
    Status.BOUNDED: "#1f5f99",
    Status.FEASIBLE: "#5f5f5f",
    Status.INFEASIBLE: "#a03020",
    Status.UNKNOWN: "#a03020",
}


def gap_text(result: Result) -> str:
    """The gap in words."""
    if result.status is Status.INFEASIBLE:
        return "no feasible point exists"
    if result.log_map == -math.inf:
        return "no feasible point found"
    return f"gap {percent(result.relative_gap)}" if math.isfinite(result.gap) else "no upper bound"


def gap_badge(result: Result) -> str:
    """An HTML span without any style sheet."""
    style = (
        f"display:inline-block;padding:.15em .6em;border-radius:.3em;background:{COLOURS[result.status]};"
        "color:#fff;font:600 .85em sans-serif"
    )
    title = escape(f"{result.status.value}; stopped: {result.stop_reason.value}")
    text = escape(f"{result.status.name.replace('_', ' ')} · {gap_text(result)}")
    return f'<span class="certimap-badge" style="{style}" title="{title}">{text}</span>'
