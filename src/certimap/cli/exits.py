"""Exit codes, and errors as one line on the standard error stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import NoReturn

import typer

from certimap.model.errors import ModelError
from certimap.results import Result, Status, StopReason


class Exit(IntEnum):
    """What a caller of the command line can rely on."""

    ANSWERED = 0  # a feasible point; the status says what is proved about it
    REJECTED = 1  # a certificate that claims more than it proves
    USAGE = 2  # wrong options, files or models
    INFEASIBLE = 3
    NO_POINT = 4  # stopped before a feasible point was found
    INTERRUPTED = 130  # Ctrl-C; what was found until then has been printed


def exit_for(result: Result) -> Exit:
    """The exit code of a solve."""
    if result.stop_reason is StopReason.INTERRUPTED:
        return Exit.INTERRUPTED
    if result.status is Status.INFEASIBLE:
        return Exit.INFEASIBLE
    return Exit.NO_POINT if result.status is Status.UNKNOWN else Exit.ANSWERED


def fail(message: object, code: Exit = Exit.USAGE) -> NoReturn:
    """Print one line and end the program."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Report a wrong model, or a file that cannot be written, in one line."""
    try:
        yield
    except ModelError as error:
        fail(error)
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
