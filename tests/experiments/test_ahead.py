"""Compilation on a second core."""

import os
import subprocess

import pytest

from certimap.experiments import ahead, mixture_tasks, topic_tasks
from certimap.experiments.reproduce import PARTS


def noted() -> None:
    """Stands for a function that compiles."""


def test_statement_calls_what_the_tasks_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    given = ahead.statement((mixture_tasks.warm_up, topic_tasks.warm_up))
    monkeypatch.setattr(mixture_tasks, "warm_up", lambda: called.append("mixture"))
    monkeypatch.setattr(topic_tasks, "warm_up", lambda: called.append("topics"))
    exec(given, {})
    assert called == ["mixture", "topics"]


def test_parts_say_what_they_compile() -> None:
    compiled = {name for name, part in PARTS.items() if part.warm_ups}
    assert compiled == PARTS.keys() - {"traces", "graphs"}
    assert PARTS["convergence"].warm_ups == (mixture_tasks.warm_up, topic_tasks.warm_up)


@pytest.mark.parametrize(("cores", "functions"), [(1, [noted]), (2, [noted]), (2, [])])
def test_process_ends_with_the_work(cores: int, functions: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    original = subprocess.Popen

    def start(*arguments: object, **options: object) -> "subprocess.Popen[bytes]":
        started.append(original(*arguments, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ahead, "statement", lambda functions: "import time; time.sleep(600)")
    with pytest.raises(KeyboardInterrupt), ahead.compiled_ahead(functions):  # type: ignore[arg-type]
        assert all(process.poll() is None for process in started)
        raise KeyboardInterrupt
    assert [process.poll() is None for process in started] == [False] * ((cores - 1) * len(functions))
