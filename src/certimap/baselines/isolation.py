"""Calls in a process of their own, so that a library that corrupts its memory ends that process and no other."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any, TypeVar, cast

Answer = TypeVar("Answer")


class CrashError(Exception):
    """The process ended without an answer."""


def isolated(function: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
    """`function(*arguments, **options)` in a second process, which stays for later calls.

    Errors of the function are raised here; Ctrl-C ends the process.
    """
    process, connection = _helper()
    try:
        connection.send((function, arguments, options))
        succeeded, answer = connection.recv()
    except (EOFError, ConnectionError) as error:
        _end(process)
        raise CrashError(f"the process of {function.__name__} ended with the code {process.exitcode}") from error
    except BaseException:
        _end(process)
        raise
    if not succeeded:
        raise answer
    return cast(Answer, answer)


@cache
def _helper() -> tuple[multiprocessing.process.BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), daemon=True)
    with _interrupts_ignored():
        process.start()
    there.close()
    return process, here


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes started meanwhile ignore Ctrl-C, which goes to all of a terminal; the first one decides."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(process: multiprocessing.process.BaseProcess) -> None:
    _helper.cache_clear()
    process.kill()
    process.join()


def _serve(connection: Connection) -> None:
    with suppress(EOFError, ConnectionError):  # the first process has ended
        while True:
            function, arguments, options = connection.recv()
            try:
                answer = True, function(*arguments, **options)
            except Exception as error:
                answer = False, error
            connection.send(answer)
