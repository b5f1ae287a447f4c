"""What an estimator raises where there is no answer to store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from certimap.results import Result, Status


class NoFeasiblePointError(ValueError):
    """No assignment satisfies the constraints, or none was found; `result` says which, and names a conflict."""

    def __init__(self, caller: str, result: Result) -> None:
        if result.status is Status.INFEASIBLE:
            conflict = "; ".join(result.conflict) or "the constraints together"
            message = f"{caller}: no clustering satisfies the constraints. These exclude each other: {conflict}."
        else:
            message = (
                f"{caller}: stopped ({result.stop_reason.value}) before a clustering that satisfies the constraints "
                "was found; it is not proved that there is none. Raise n_init or the limits."
            )
        super().__init__(message)
        self.result = result


@contextmanager
def named_caller(caller: str) -> Iterator[None]:
    """Say in errors about values whose call it was."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{caller}: {error}") from error
