"""What an estimator raises where there is no answer to store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from certimap.results import Result, Status


class NoFeasiblePointError(ValueError):
    """No assignment satisfies the constraints, or none was found; `result` says which, and names a conflict."""

    def __init__(self, caller: str, result: Result, noun: str = "clustering") -> None:
        if result.status is Status.INFEASIBLE:
            conflict = "; ".join(result.conflict) or "the constraints together"
            message = f"{caller}: no {noun} satisfies the constraints. These exclude each other: {conflict}."
        else:
            message = (
                f"{caller}: stopped ({result.stop_reason.value}) before a {noun} that satisfies the "
                "constraints was found; it is not proved that there is none. Raise n_init or the limits."
            )
        super().__init__(message)
        self.result = result


@contextmanager
def named_caller(caller: str, names: Mapping[str, str] | None = None) -> Iterator[None]:
    """Say in errors about values whose call it was; `names` are the caller's names of parameters passed on."""
    try:
        yield
    except ValueError as error:
        first, _, rest = str(error).partition(" ")
        raise ValueError(f"{caller}: {(names or {}).get(first, first)} {rest}") from error
