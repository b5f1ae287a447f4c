"""Records by hand."""

from collections.abc import Sequence
from typing import Any

from certimap.experiments.methods import BRANCH_AND_BOUND, OURS, VARIATIONAL
from certimap.experiments.tasks import Record


def record(method: str, value: float, bound: float | None = None, **others: Any) -> Record:
    given: dict[str, Any] = {
        "method": method,
        "returned": value - 1.0,
        "refitted": value,
        "bound": bound,
        "certified": method == OURS and bound is not None,
        "status": "FEASIBLE" if bound is None else "BOUNDED",
        "stopped": "iterations",
        "seconds": 0.25,
        "labels": [0, 0, 1, 1],
        "history": [[0.1, float("inf"), value], [0.2, bound, value]] if bound is not None else [],
    }
    return Record(**{**given, **others})


def three_methods(value: float = 3.0, bound: float = 4.0) -> Sequence[Record]:
    """Ours, variational Bayes, and branch and bound without an answer."""
    lost = record(BRANCH_AND_BOUND, -float("inf"), 90.0, labels=None, status="UNKNOWN")
    return [record(VARIATIONAL, value - 2.0), lost, record(OURS, value, bound)]
