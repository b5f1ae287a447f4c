"""Tasks of an experiment, run one after another under a progress bar, each at most once."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from threadpoolctl import threadpool_limits

from certimap._version import __version__
from certimap.baselines.run import MethodRun
from certimap.experiments.store import Store
from certimap.report.text import percent
from certimap.results import Callback, IterationRecord, Result, StopReason

FORMAT = 1  # of the results of tasks


@dataclass(frozen=True)
class Task:
    """One computation.

    Attributes:
        name: what it is, for the file of its result.
        parameters: everything that the result depends on, as plain values.
        label: what the progress bar says.
        compute: returns plain values that JSON can hold; is given a callback that shows how a solve proceeds.
        compiled: it needs kernels of certimap. Such tasks come last: a second core may be compiling the kernels.
    """

    name: str
    parameters: Mapping[str, Any]
    label: str
    compute: Callable[[Callback], Any]
    compiled: bool = False

    @property
    def key(self) -> str:
        """The name and a hash of everything that the result depends on; every version of certimap has its own."""
        meaning = {"name": self.name, "parameters": self.parameters, "version": __version__, "format": FORMAT}
        text = json.dumps(meaning, sort_keys=True, separators=(",", ":"))
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


@dataclass(frozen=True)
class Record:
    """A `MethodRun` or a `Result` as plain values.

    Attributes:
        method: its name.
        returned, refitted: log-density of the point as returned, and of its labels with optimal parameters.
        bound: upper bound, None where there is none; `certified`: with a certificate, not only claimed.
        status, stopped: what is proved, and why the search ended.
        seconds: wall-clock time.
        labels: of the points or tokens; None without an answer.
        history: (seconds, bound, value) of the search.
        details: further numbers.
    """

    method: str
    returned: float
    refitted: float
    bound: float | None
    certified: bool
    status: str
    stopped: str
    seconds: float
    labels: list[int] | None
    history: list[list[float]] = field(default_factory=list)
    details: dict[str, float | None] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """Distance from the refitted value to the bound."""
        return None if self.bound is None or self.labels is None else self.bound - self.refitted


def record_of_run(run: MethodRun) -> dict[str, Any]:
    """A baseline as plain values."""
    _stop_if_interrupted(run.refitted)
    answer = run.refitted.assignment
    details = {name: value for name, value in (run.details or {}).items() if value is None or isinstance(value, float)}
    record = Record(
        method=run.name,
        returned=run.returned.log_map,
        refitted=run.refitted.log_map,
        bound=run.claimed_bound,
        certified=False,
        status=run.refitted.status.name,
        stopped=run.refitted.stop_reason.value,
        seconds=run.seconds,
        labels=None if answer is None else answer["z"].tolist(),
        details={**details, **run.refitted.statistics},
    )
    return asdict(record)


def record_of_result(method: str, result: Result, seconds: float, labels: list[int] | None) -> dict[str, Any]:
    """A solve as plain values; its point needs no refit."""
    _stop_if_interrupted(result)
    bounded = result.upper_bound < float("inf")
    record = Record(
        method=method,
        returned=result.log_map,
        refitted=result.log_map,
        bound=result.upper_bound if bounded else None,
        certified=bounded and result.certificate is not None,
        status=result.status.name,
        stopped=result.stop_reason.value,
        seconds=seconds,
        labels=labels,
        history=[[r.seconds, r.bound, r.incumbent] for r in result.history],
        details={name: float(value) for name, value in result.statistics.items()},
    )
    return asdict(record)


def run_tasks(tasks: Iterable[Task], console: Console, store: Store | None = None) -> dict[str, Any]:
    """Results by key, each task once; what the store holds is not computed again.

    Libraries run on one thread, so that seconds can be compared.
    """
    distinct = {task.key: task for task in sorted(tasks, key=lambda task: task.compiled)}
    results: dict[str, Any] = {}
    with threadpool_limits(1), _progress(console, len(distinct)) as (show, advance):
        for key, task in distinct.items():
            kept = None if store is None else store.get(key)
            if kept is None:
                show(task.label)
                kept = task.compute(_noting(task.label, show))
                if store is not None:
                    store.put(key, task.parameters, kept)
            results[key] = kept
            advance()
    return results


def _noting(label: str, show: Callable[[str], None]) -> Callback:
    def note(record: IterationRecord) -> None:
        found = f"gap {percent(record.gap)}" if math.isfinite(record.gap) else "no bound yet"
        show(f"{label}: {found}")

    return note


def _stop_if_interrupted(result: Result) -> None:
    """An interrupted solve has a valid answer, yet not the one that the task's parameters stand for."""
    if result.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt


@contextmanager
def _progress(console: Console, total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    columns = (
        SpinnerColumn(),
        BarColumn(24),
        MofNCompleteColumn(),
        TimeElapsedColumn(table_column=Column(min_width=7)),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("starting", total=total)

        def show(text: str) -> None:
            progress.update(bar, description=text)
            if not console.is_terminal and ":" not in text:
                console.print(f"running     {text}")

        yield show, lambda: progress.advance(bar)
