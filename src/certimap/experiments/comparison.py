"""What the tables of the reproduction and of `certimap compare` share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from certimap.baselines.scip import CRASHED
from certimap.experiments.methods import LABEL, OURS, PAPER_NAME, paper_name
from certimap.experiments.tasks import Record
from certimap.metrics import matched_agreement, variation_of_information
from certimap.report.document import Cell, Table, best_of

IntArray = NDArray[np.int64]
Printed = Mapping[str, tuple[float | None, float | None]]  # value and bound by the paper's names of the methods
TIE = 1e-6  # relative: values that only rounding tells apart
LOG_MAP_HEADS = ("", "as returned", "after refit", "upper bound", "gap", "bound is")
LOG_MAP_COLUMNS = ("method", "returned", "refitted", "bound", "bound_is", "printed_value", "printed_bound")


def figure(value: float | None, digits: int = 3) -> str:
    """A number for a table, large ones with fewer decimals; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) >= 1e7:
        return f"{value:.3e}"
    return f"{value:,.{digits if abs(value) < 1e5 else min(digits, 1)}f}"


def beside(value: float | None, printed: float | None, digits: int = 3, *, strong: bool = False) -> Cell:
    """Our figure, and the paper's in brackets."""
    return Cell(figure(value, digits), "" if printed is None else f"[{printed:,}]", strong)


def log_map_cells(found: Sequence[Record], printed: Printed) -> list[tuple[Cell | str, ...]]:
    """Rows under `LOG_MAP_HEADS`: every method's values and its bound, the best value in bold."""
    rows: list[tuple[Cell | str, ...]] = []
    for record, strong in zip(found, best_of([record.refitted for record in found]), strict=True):
        value, bound = printed.get(paper_name(record.method), (None, None))
        rows.append(
            (
                record.method,
                figure(record.returned),
                beside(record.refitted, value, strong=strong),
                beside(record.bound, bound),
                figure(record.gap),
                bound_note(record),
            )
        )
    return rows


def log_map_rows(found: Sequence[Record], printed: Printed) -> list[tuple[str | float | None, ...]]:
    """The same numbers under `LOG_MAP_COLUMNS`."""
    return [
        (r.method, r.returned, r.refitted, r.bound, bound_note(r), *printed.get(paper_name(r.method), (None, None)))
        for r in found
    ]


def order_remark(name: str, found: Sequence[Record], printed: Printed) -> str:
    """How the methods rank by log MAP here and in the paper."""
    ours = {r.method: r.refitted for r in found if r.method in PAPER_NAME and r.labels is not None}
    paper = {
        method: printed[stated][0] for method, stated in PAPER_NAME.items() if stated in printed and method in ours
    }
    theirs = {method: value for method, value in paper.items() if value is not None}
    agreeing, pairs = same_order(ours, theirs)
    stated = order({paper_name(method): value for method, value in theirs.items()})
    return f"{name}, order of the methods: ours {order(ours)}; the paper's {stated}. {agreeing} of {pairs} pairs agree."


def largest_remark(found: Mapping[str, Sequence[Record]]) -> str:
    """Whether no method's labels are worth more than certimap's, and where some are."""
    behind = []
    for name, records in found.items():
        ours = next(record.refitted for record in records if record.method == OURS)
        better = [r.method for r in records if r.refitted > ours + TIE * max(1.0, abs(ours))]
        behind += [f"{method} on {name}" for method in better]
    if behind:
        return f"Above certimap's value, so that its search was too short: {', '.join(behind)}."
    return "No value is above certimap's, in any row."


def clusterings(records: Sequence[Record], labels: IntArray | None) -> dict[str, IntArray]:
    """The clusterings that can be compared: the labels first, then every method that has an answer."""
    found = {} if labels is None else {LABEL: labels}
    found.update({record.method: np.array(record.labels) for record in records if record.labels is not None})
    return found


def distances(given: Mapping[str, IntArray]) -> dict[tuple[str, str], float]:
    """Variation of information of every pair."""
    return {(a, b): variation_of_information(*_where_known(given[a], given[b])) for a, b in combinations(given, 2)}


def agreement(labels: IntArray, found: IntArray) -> float:
    """Share of the labelled points on which labels and clusters agree after matching."""
    return matched_agreement(*_where_known(labels, found))


def distance_table(
    id: str,
    caption: str,
    given: Mapping[str, IntArray],
    apart: Mapping[tuple[str, str], float],
    printed: Mapping[tuple[str, str], float | None],
) -> Table:
    """The upper triangle of the distances between clusterings."""
    names = list(given)
    rows: list[tuple[Cell | str, ...]] = []
    for a in names:
        cells = [beside(apart[a, b], printed.get((a, b))) if (a, b) in apart else Cell("") for b in names[1:]]
        rows.append((a, *cells))
    return Table(id, caption, ("", *names[1:]), tuple(rows[:-1]))


def order(values: Mapping[str, float]) -> str:
    """Names from the largest value to the smallest, equal ones joined by =."""
    ranked = sorted(values, key=lambda name: -values[name])
    text = ranked[0] if ranked else ""
    for before, name in pairwise(ranked):
        tie = abs(values[before] - values[name]) <= TIE * max(1.0, abs(values[name]))
        text += f" {'=' if tie else '>'} {name}"
    return text


def same_order(ours: Mapping[str, float], printed: Mapping[str, float]) -> tuple[int, int]:
    """Pairs of names that both put in the same strict order, and all pairs."""
    pairs = list(combinations([name for name in printed if name in ours], 2))
    agreeing = sum((ours[a] - ours[b]) * (printed[a] - printed[b]) > 0.0 for a, b in pairs)
    return agreeing, len(pairs)


def bound_note(record: Record) -> str:
    """What kind of bound a record has."""
    if record.bound is None:
        return "crashed" if CRASHED in record.details else "none"
    return "certified" if record.certified else "claimed"


def _where_known(a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
    """Both without the points that one of them has no label for."""
    known = (a >= 0) & (b >= 0)
    return a[known], b[known]
