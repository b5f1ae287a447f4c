"""What the tables of the reproduction and of `certimap compare` share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from numpy.typing import ArrayLike

from certimap.experiments.tasks import Record
from certimap.metrics import variation_of_information
from certimap.report.document import Cell, Table

LABEL = "labels"


def figure(value: float | None, digits: int = 3) -> str:
    """A number for a table; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.{digits}f}" if abs(value) < 1e7 else f"{value:.3e}"


def beside(value: float | None, printed: float | None, digits: int = 3, *, strong: bool = False) -> Cell:
    """Our figure, and the paper's in brackets."""
    return Cell(figure(value, digits), "" if printed is None else f"[{printed:,}]", strong)


def clusterings(records: Sequence[Record], labels: ArrayLike | None) -> dict[str, ArrayLike]:
    """The clusterings that can be compared: the labels first, then every method that has an answer."""
    found: dict[str, ArrayLike] = {} if labels is None else {LABEL: labels}
    found.update({record.method: record.labels for record in records if record.labels is not None})
    return found


def distances(given: Mapping[str, ArrayLike]) -> dict[tuple[str, str], float]:
    """Variation of information of every pair."""
    return {(a, b): variation_of_information(given[a], given[b]) for a, b in combinations(given, 2)}


def distance_table(
    id: str,
    caption: str,
    given: Mapping[str, ArrayLike],
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
        tie = abs(values[before] - values[name]) <= 1e-6 * max(1.0, abs(values[name]))
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
        return "none"
    return "certified" if record.certified else "claimed"
