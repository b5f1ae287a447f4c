"""Compiling on a second core while the first one works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def compiled_ahead(warm_ups: Sequence[Callable[[], None]]) -> Iterator[None]:
    """Run functions that compile kernels into the cache on disk, in a process of its own.

    numba holds the interpreter lock, so that a thread would not do. Nothing waits for it: what is not in the cache by
    the time it is needed is compiled again.
    """
    if not warm_ups or (os.cpu_count() or 1) < 2:
        yield
        return
    silent = subprocess.DEVNULL
    command = [sys.executable, "-c", statement(warm_ups)]
    # In a session of its own, so that Ctrl-C ends it here and not with a traceback.
    process = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def statement(functions: Sequence[Callable[[], None]]) -> str:
    """Import the functions, which belong to modules, and call them one after another."""
    calls = [(function.__module__, function.__name__) for function in functions]
    return "; ".join(f"import {module}; {module}.{name}()" for module, name in calls)
