"""The paper's tables of the mixture, its figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from certimap.experiments import printed, prose
from certimap.experiments.comparison import (
    LOG_MAP_COLUMNS,
    LOG_MAP_HEADS,
    agreement,
    beside,
    bound_note,
    clusterings,
    distance_table,
    distances,
    figure,
    largest_remark,
    log_map_cells,
    log_map_rows,
    order_remark,
)
from certimap.experiments.data import DataSet
from certimap.experiments.methods import LABEL, OURS, paper_name
from certimap.experiments.tasks import Record
from certimap.metrics import variation_of_information
from certimap.report.document import Cell, DataFile, Section, Table, best_of

Records = Mapping[str, Sequence[Record]]  # by data set
Labels = Mapping[str, NDArray[np.int64] | None]


def voi_section(records: Records, labels: Labels) -> Section:
    """Variation of information between the labels and the methods' clusterings."""
    tables, rows, shared, remarks = [], [], [], []
    for data, found in records.items():
        given = clusterings(found, labels[data])
        apart = distances(given)
        printed_voi = {pair: _printed_distance(data, *pair) for pair in apart}
        caption = f"{data}: VoI in nats, the paper's in brackets"
        tables.append(distance_table(f"voi-{data}", caption, given, apart, printed_voi))
        rows += [(data, *pair, value, printed_voi[pair]) for pair, value in apart.items()]
        agreeing = {name: agreement(given[LABEL], z) for name, z in given.items() if name != LABEL}
        shares = ", ".join(f"{name} {100.0 * share:.1f} %" for name, share in agreeing.items())
        remarks.append(f"{data}, points that agree with the labels after matching clusters: {shares}.")
        shared += [(data, name, share) for name, share in agreeing.items()]
    return Section(
        id="voi",
        title="Variation of information",
        paragraphs=(prose.VOI,),
        parts=tuple(tables),
        files=(
            DataFile("voi.csv", ("data", "first", "second", "voi", "printed"), tuple(rows)),
            DataFile("agreement.csv", ("data", "method", "share"), tuple(shared)),
        ),
        remarks=(*remarks, *_paper_contradictions(), *_voi_scale(labels)),
    )


def log_map_section(records: Records, sets: Mapping[str, DataSet]) -> Section:
    """log MAP of every method on every data set, as returned and after the closed-form refit, with bounds."""
    tables, rows, remarks = [_data_table(sets)], [], []
    for data, found in records.items():
        paper = printed.LOG_MAP[data]
        caption = f"{data}: log MAP, the paper's in brackets"
        tables.append(Table(f"log-map-{data}", caption, LOG_MAP_HEADS, tuple(log_map_cells(found, paper))))
        rows += [(data, *row) for row in log_map_rows(found, paper)]
        remarks.append(order_remark(data, found, paper))
    return Section(
        id="log-map",
        title="log MAP",
        paragraphs=prose.LOG_MAP,
        parts=tuple(tables),
        files=(DataFile("log_map.csv", ("data", *LOG_MAP_COLUMNS), tuple(rows)),),
        remarks=(largest_remark(records), *remarks),
    )


def must_link_section(records: Mapping[int, Sequence[Record]]) -> Section:
    """MAP and bound on iris under a growing number of must-links, ours and branch and bound."""
    shown, rows = [], []
    carried = nested({links: _ours(found) for links, found in records.items()})
    for links, found in records.items():
        cells: list[Cell | str] = [str(links)]
        best = best_of([record.refitted for record in found])
        for solved, strong in zip(found, best, strict=True):
            record = carried[links] if solved.method == OURS else solved
            value, bound = printed.MUST_LINK.get(links, {}).get(paper_name(record.method), (None, None))
            cells += [beside(record.refitted, value, strong=strong), beside(record.bound, bound)]
            own = (solved.refitted, solved.bound)
            rows.append((links, record.method, record.refitted, record.bound, bound_note(record), *own, value, bound))
        shown.append(tuple(cells))
    names = [record.method for record in next(iter(records.values()))]
    heads = [head for name in names for head in (f"{name}: MAP", "upper bound")]
    table = Table("must-link-table", "iris: log MAP, the paper's in brackets", ("must-links", *heads), tuple(shown))
    own_columns = ("solved_value", "solved_bound")
    columns = ("must_links", "method", "value", "bound", "bound_is", *own_columns, "printed_value", "printed_bound")
    unconstrained, sixteen = printed.MUST_LINK[0][printed.GBD][0], printed.MUST_LINK[16][printed.GBD][0]
    return Section(
        id="must-link",
        title="Must-links",
        paragraphs=(prose.MUST_LINK,),
        parts=(table,),
        files=(DataFile("must_link.csv", columns, tuple(rows)),),
        remarks=(
            f"The paper's table contradicts itself: {sixteen} with 16 must-links is above {unconstrained} without any. "
            "A constrained maximum cannot exceed the unconstrained one, so that the latter was not optimal; nor do its "
            "bounds fall as links are added (-78.566 with 4 and 8 links, -81.486 with 16, -78.089 with 32).",
            _carried_remark(records, carried),
        ),
    )


def running_time_section(records: Records) -> Section:
    """Seconds of every method, and what it guarantees."""
    tables, rows = [], []
    for data, found in records.items():
        shown = []
        for record in found:
            seconds, guarantee = printed.RUNNING_TIME[data].get(paper_name(record.method), (None, ""))
            said = f"[{guarantee}]" if guarantee else ""
            shown.append((record.method, beside(record.seconds, seconds), Cell(_guarantee(record), said)))
            rows.append((data, record.method, record.seconds, _guarantee(record), seconds, guarantee or None))
        heads = ("", "seconds", "guarantee")
        tables.append(Table(f"running-time-{data}", f"{data}: the paper's in brackets", heads, tuple(shown)))
    columns = ("data", "method", "seconds", "guarantee", "printed_seconds", "printed")
    return Section(
        id="running-time",
        title="Running time and optimality",
        paragraphs=(prose.RUNNING_TIME,),
        parts=tuple(tables),
        files=(DataFile("running_time.csv", columns, tuple(rows)),),
    )


def _data_table(sets: Mapping[str, DataSet]) -> Table:
    rows: list[tuple[Cell | str, ...]] = []
    for name, data in sets.items():
        n, d = data.points.shape
        rows.append((name, str(n), str(d), str(data.n_clusters), data.preparation))
    heads = ("", "points", "features", "clusters", "preparation")
    return Table("data-sets", "The data sets, prepared as the paper says", heads, tuple(rows))


# ------------------------------------------------------------------------------------------------------- remarks
def _paper_contradictions() -> tuple[str, ...]:
    pairs = ("Label", printed.GBD), ("Label", printed.SAMPLER)
    return tuple(
        "The paper says that in all tests its solution is closer to the labels than the sampler's; its own table has "
        f"{voi[pairs[0]]} against {voi[pairs[1]]} on {data}."
        for data, voi in printed.VOI.items()
        if voi[pairs[0]] > voi[pairs[1]]
    )


def _voi_scale(labels: Labels) -> tuple[str, ...]:
    """Printed distances to the labels that are smaller than a single point makes them."""
    said = []
    for data, z in labels.items():
        step = np.inf if z is None else _smallest_step(z)
        smallest = min(distance for pair, distance in printed.VOI[data].items() if "Label" in pair)
        if smallest < step < np.inf:
            said.append(
                f"The paper's distances are not in nats: it prints {smallest} on {data}, where a clustering that "
                f"differs from the labels in one point only is {step:.3f} away. They may be divided by log N."
            )
    return tuple(said)


def _smallest_step(labels: NDArray[np.int64]) -> float:
    """The smallest distance to a clustering in which one point is in another of the labels' clusters."""
    distances_found = []
    clusters, first = np.unique(labels, return_index=True)
    for point in first:
        for other in clusters[clusters != labels[point]]:
            moved = labels.copy()
            moved[point] = other
            distances_found.append(variation_of_information(labels, moved))
    return min(distances_found, default=np.inf)


def nested(records: Mapping[int, Record]) -> dict[int, Record]:
    """Solves under links of which the fewer are always among the more, with what they prove about each other.

    A clustering that keeps more links keeps fewer, and a bound under fewer links is one under more.
    """
    ascending = sorted(records)
    carried: dict[int, Record] = {}
    bound: float | None = None
    for links in ascending:
        own = records[links].bound
        bound = own if bound is None else bound if own is None else min(bound, own)
        carried[links] = replace(records[links], bound=bound, certified=bound is not None)
    best = carried[ascending[-1]]
    for links in reversed(ascending):
        best = max(best, carried[links], key=lambda record: record.refitted)
        carried[links] = replace(carried[links], returned=best.returned, refitted=best.refitted, labels=best.labels)
    return carried


def _carried_remark(records: Mapping[int, Sequence[Record]], carried: Mapping[int, Record]) -> str:
    solved = {links: _ours(found) for links, found in records.items()}
    values = [str(links) for links in solved if carried[links].refitted > solved[links].refitted]
    bounds = [str(links) for links in solved if carried[links].bound != solved[links].bound]
    said = [
        f"the {what} with {', '.join(found)} links" for what, found in (("value", values), ("bound", bounds)) if found
    ]
    if not said:
        return "Every value and bound of certimap is that of its own solve."
    return (
        f"Taken over from another row of certimap, whose clustering or bound is valid here too: {' and '.join(said)}; "
        "the file has what each solve found by itself."
    )


def _ours(found: Sequence[Record]) -> Record:
    return next(record for record in found if record.method == OURS)


def _guarantee(record: Record) -> str:
    if record.bound is None or record.gap is None:
        return "none"
    gap = f"gap {figure(record.gap)} nat"
    if record.certified:
        return f"{record.status.lower()}, {gap}, certified"
    return f"{gap}, claimed"


def _printed_distance(data: str, a: str, b: str) -> float | None:
    return printed.VOI[data].get((paper_name(a), paper_name(b)))
