"""The log table: one row per iteration record, for terminals, pipes and golden tests alike.

It reads nothing but records, so that it shows what callbacks and the history show:

    with LogTable(Console(), heading=describe(model), gap=1e-6) as log:
        result = solve(model, gap=1e-6, callback=log)
        log.finish(result)
"""

from __future__ import annotations

import math
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status as Spinner

from certimap._version import __version__
from certimap.model.domains import Categorical, Integer
from certimap.model.model import Model
from certimap.report.text import number, percent, plural
from certimap.results import IterationRecord, Result, Status

KEY = "Src: H heuristic  C cut or column  B branching  E elimination"
REPEAT = 20  # rows between two column headers
INTERVAL = 0.5  # seconds between two rows that bring no better incumbent


class LogTable:
    """Prints the records it is called with, at most two rows a second besides improvements and the last row.

    Seconds are those of the records, so one history always prints the same table. `show_time=False` leaves the time
    column out. Used as a context manager on a terminal it also shows the state of the search between two rows.
    """

    def __init__(
        self,
        console: Console,
        *,
        heading: str = "",
        gap: float | None = None,
        seed: int | None = None,
        interval: float = INTERVAL,
        show_time: bool = True,
    ) -> None:
        self.console = console
        self._heading = heading
        self._gap = gap
        self._seed = seed
        self._interval = interval
        self._show_time = show_time
        self._rows = 0
        self._shown: IterationRecord | None = None
        self._pending: IterationRecord | None = None
        self._spinner: Spinner | None = None

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._spinner = self.console.status("starting", refresh_per_second=4)
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_spinner()

    def __call__(self, record: IterationRecord) -> None:
        """Take one record; this is the callback."""
        if self._spinner is not None:
            self._spinner.update(_progress(record))
        shown = self._shown
        improved = shown is None or record.incumbent > shown.incumbent
        if shown is None or improved or record.seconds - shown.seconds >= self._interval:
            self._row(record, improved)
        else:
            self._pending = record

    def finish(self, result: Result, certificate_path: str | None = None) -> None:
        """Print the last row if it was held back, and what the solve proved."""
        self._stop_spinner()
        if self._shown is None:
            self._header()
        if self._pending is not None:
            self._row(self._pending, improved=False)
        self._print(status_line(result, self._gap))
        self._print(certificate_line(result, certificate_path))

    def _row(self, record: IterationRecord, improved: bool) -> None:
        if self._shown is None:
            self._header()
        if self._rows % REPEAT == 0:
            self._print(_columns(self._show_time), style="bold")
        self._print(_format(record, self._show_time), style="green" if improved else None)
        self._rows += 1
        self._shown, self._pending = record, None

    def _header(self) -> None:
        target = None if self._gap is None else f"gap target {percent(self._gap)}"
        seed = None if self._seed is None else f"seed {self._seed}"
        settings = "  ".join(part for part in (target, seed) if part)
        parts = (f"certimap {__version__}  {self._heading}".rstrip(), settings)
        self._print(" | ".join(part for part in parts if part))
        self._print(KEY)

    def _print(self, line: str, style: str | None = None) -> None:
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _stop_spinner(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


def describe(model: Model) -> str:
    """The model's size in one line."""
    domains = [v.domain for v in model.variables.values()]
    discrete = sum(isinstance(d, Categorical | Integer) for d in domains)
    kinds = [(discrete, "discrete"), (len(domains) - discrete, "continuous")]
    counts = " and ".join(f"{count} {kind}" for count, kind in kinds if count) or "no"
    noun = plural(len(domains), "variable").partition(" ")[2]
    parts = [f"{counts} {noun}", plural(len(model.factors), "factor")]
    if model.constraints:
        parts.append(plural(len(model.constraints), "constraint"))
    if model.softs:
        parts.append(plural(len(model.softs), "soft constraint"))
    return ", ".join(parts)


def status_line(result: Result, gap: float | None = None) -> str:
    """What is proved and why the search stopped."""
    stop = f"stopped: {result.stop_reason.value}"
    if result.status is Status.INFEASIBLE:
        proved = "conflict: " + ("; ".join(result.conflict) if result.conflict else "the domains alone")
    elif not math.isfinite(result.gap):
        proved = "no feasible point found" if result.log_map == -math.inf else "no finite upper bound"
    else:
        proved = f"gap {percent(result.relative_gap)}"
        if gap is not None:
            proved += f" {'<=' if result.relative_gap <= gap else '>'} {percent(gap)}"
    if result.neighbourhood:
        proved += f"  none better among {result.neighbourhood}"
    if result.local_bound is not None:
        proved += f"  local bound {number(result.local_bound)}, no proof"
    return f"status      {result.status.name}  {proved}   {stop}"


def certificate_line(result: Result, path: str | None = None) -> str:
    """The size of the proof and how to check it."""
    certificate = result.certificate
    if certificate is None:
        return "certificate none"
    leaves = certificate.leaves or certificate.details.get("leaves", ())
    size = plural(len(leaves), "leaf")
    if certificate.cuts:
        size += f", {plural(len(certificate.cuts), 'cut')}"
    check = f"   verify: certimap verify {path}" if path else ""
    return f"certificate {certificate.algorithm}, {size}{check}"


def _columns(show_time: bool) -> str:
    head = "Src   Iter   Nodes    Open |        Bound    Incumbent      Gap |    Cuts  Columns"
    return f"{head} | Time(s)" if show_time else head


def _format(record: IterationRecord, show_time: bool) -> str:
    row = (
        f" {record.source:1} {record.iteration:7d} {record.nodes:7d} {record.open_nodes:7d} | "
        f"{number(record.bound):>12} {number(record.incumbent):>12} {percent(record.gap):>8} | "
        f"{record.cuts:7d} {record.columns:8d}"
    )
    return f"{row} | {record.seconds:7.2f}" if show_time else row


def _progress(record: IterationRecord) -> str:
    return (
        f"{record.nodes} nodes, {record.open_nodes} open, bound {number(record.bound)}, "
        f"gap {percent(record.gap)}, {record.seconds:.0f} s"
    )
