"""Calls in a process of their own."""

import os
import signal

import pytest
from tests.baselines.mixtures import mixture

from certimap.baselines import scip
from certimap.baselines.isolation import CrashError, isolated
from certimap.baselines.scip import CRASHED, apart
from certimap.experiments.comparison import bound_note
from certimap.experiments.tasks import Record, record_of_run


def die(*_: object, **__: object) -> None:
    os.abort()


def interrupt() -> None:
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()


def test_answers_and_errors_come_back() -> None:
    assert isolated(divmod, 7, 2) == (3, 1)
    first = isolated(os.getpid)
    assert first != os.getpid() and isolated(os.getpid) == first  # one process for all calls
    with pytest.raises(ZeroDivisionError):
        isolated(divmod, 7, 0)
    assert isolated(int, "12", base=3) == 5


def test_a_crash_ends_one_call_only() -> None:
    with pytest.raises(CrashError, match="the process of die ended with the code -6"):
        isolated(die)
    assert isolated(divmod, 7, 2) == (3, 1)


def test_interruption_ends_the_call() -> None:
    with pytest.raises(KeyboardInterrupt):
        isolated(interrupt)
    assert isolated(divmod, 7, 2) == (3, 1)


def test_a_crashed_solver_is_a_run_without_an_answer() -> None:
    run = apart(die, mixture(), 1.0)  # type: ignore[arg-type]
    record = Record(**record_of_run(run))
    assert run.name == scip.NAME and record.labels is None and record.bound is None
    assert record.details[CRASHED] == 1.0 and bound_note(record) == "crashed"
