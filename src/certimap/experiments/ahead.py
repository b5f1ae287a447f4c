"""Compiling on a second core while the first one works."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from certimap.experiments.topic_tasks import warm_up

STATEMENT = f"from {warm_up.__module__} import {warm_up.__name__}; {warm_up.__name__}('auto')"


@contextmanager
def topics_compiled_ahead() -> Iterator[None]:
    """Compile the topic kernels into the cache on disk, in a process of its own: numba holds the interpreter lock.

    Nothing waits for it: what is not in the cache by the time it is needed is compiled again.
    """
    if (os.cpu_count() or 1) < 2:
        yield
        return
    silent = subprocess.DEVNULL
    command = [sys.executable, "-c", STATEMENT]
    # In a session of its own, so that Ctrl-C ends it here and not with a traceback.
    process = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        process.wait()
