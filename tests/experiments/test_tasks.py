"""Tasks run once, in order, and a run goes on where it stopped."""

import io
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from certimap import Result, Status
from certimap.baselines.run import MethodRun, unbounded
from certimap.experiments import tasks
from certimap.experiments.store import Store
from certimap.experiments.tasks import Record, Task, record_of_result, record_of_run, run_tasks
from certimap.results import StopReason

Compute = Callable[..., Any]


def quiet() -> Console:
    return Console(file=io.StringIO())


def task(name: str, compute: Compute, **parameters: Any) -> Task:
    return Task(name, parameters, f"{name} on data", compute)


def solved(**changes: Any) -> Result:
    result = Result(
        assignment={"z": [0, 1]},
        log_map=1.5,
        upper_bound=2.0,
        status=Status.BOUNDED,
        stop_reason=StopReason.TIME,
        certificate=None,
        history=(),
        statistics={"nodes": 3},
    )
    return replace(result, **changes)


def test_key_depends_on_all_that_the_result_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    first = task("a", lambda callback: 1, seed=0)
    assert first.key == task("a", lambda callback: 2, seed=0).key
    assert len({first.key, task("a", len, seed=1).key, task("b", len, seed=0).key}) == 3
    before = first.key
    monkeypatch.setattr(tasks, "__version__", "999")
    assert first.key != before


def test_each_task_runs_once_in_order(tmp_path: Path) -> None:
    ran: list[str] = []
    todo = [task(name, lambda callback, name=name: ran.append(name) or name) for name in ("a", "b", "a")]
    results = run_tasks(todo, quiet(), Store(tmp_path))
    assert ran == ["a", "b"] and results == {todo[0].key: "a", todo[1].key: "b"}
    assert run_tasks(todo, quiet(), Store(tmp_path)) == results
    assert ran == ["a", "b"]
    run_tasks(todo, quiet())  # nothing is kept
    assert ran == ["a", "b", "a", "b"]


def test_what_is_compiled_meanwhile_comes_last() -> None:
    ran: list[str] = []
    todo = [task(name, lambda callback, name=name: ran.append(name) or name) for name in ("a", "b", "c")]
    results = run_tasks([replace(todo[0], compiled=True), *todo[1:]], quiet())
    assert ran == ["b", "c", "a"] and results == {t.key: t.name for t in todo}


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    ran: list[str] = []

    def stop(callback: Any) -> str:
        ran.append("b")
        if ran.count("b") == 1:
            raise KeyboardInterrupt
        return "b"

    todo = [task("a", lambda callback: ran.append("a") or "a"), task("b", stop)]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(todo, quiet(), Store(tmp_path))
    assert list(run_tasks(todo, quiet(), Store(tmp_path)).values()) == ["a", "b"]
    assert ran == ["a", "b", "b"]


def test_what_runs_is_said_once_without_a_terminal(tmp_path: Path) -> None:
    console = Console(file=io.StringIO())
    run_tasks([task("a", lambda callback: 1)], console)
    assert console.file.getvalue() == "running     a on data\n"  # type: ignore[attr-defined]


def test_records_hold_what_tables_need() -> None:
    ours = Record(**record_of_result("certimap", solved(), 0.5, [0, 1]))
    assert (ours.refitted, ours.bound, ours.gap, ours.status) == (1.5, 2.0, 0.5, "BOUNDED")
    assert not ours.certified  # no certificate came with it
    assert ours.details == {"nodes": 3.0}
    open_bound = Record(**record_of_result("certimap", solved(upper_bound=math.inf), 0.5, [0, 1]))
    assert open_bound.bound is None and open_bound.gap is None
    run = MethodRun("m", unbounded(None, -math.inf), unbounded(None, -math.inf), 1.0, 7.0, {"stated value": None})
    nothing = Record(**record_of_run(run))
    assert nothing.labels is None and nothing.bound == 7.0 and nothing.gap is None and not nothing.certified


def test_interrupted_solves_are_not_kept() -> None:
    stopped = solved(stop_reason=StopReason.INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        record_of_result("certimap", stopped, 0.5, [0, 1])
    with pytest.raises(KeyboardInterrupt):
        record_of_run(MethodRun("m", stopped, stopped, 1.0))
