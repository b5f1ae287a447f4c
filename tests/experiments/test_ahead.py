"""Compilation on a second core."""

import os
import subprocess

import pytest

from certimap.experiments import ahead


def test_statement_is_what_the_tasks_run_first(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr("certimap.experiments.topic_tasks.warm_up", called.append)
    exec(ahead.STATEMENT, {})
    assert called == ["auto"]


@pytest.mark.parametrize("cores", [1, 2])
def test_process_ends_with_the_work(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    original = subprocess.Popen

    def start(*arguments: object, **options: object) -> "subprocess.Popen[bytes]":
        started.append(original(*arguments, **options))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(ahead, "STATEMENT", "import time; time.sleep(600)")
    with pytest.raises(KeyboardInterrupt), ahead.topics_compiled_ahead():
        assert all(process.poll() is None for process in started)
        raise KeyboardInterrupt
    assert [process.poll() is None for process in started] == [False] * (cores - 1)
