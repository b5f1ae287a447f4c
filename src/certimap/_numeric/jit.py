"""Decorators of compiled functions."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def entry(function: _Function) -> _Function:
    """Compile a function that is called from Python, without the interpreter lock and cached on disk."""
    return cast(_Function, njit(cache=True, nogil=True)(function))


def kernel(function: _Function) -> _Function:
    """Compile a function that only compiled functions call.

    Without wrappers for callers in Python and C, which take as long to compile as the function itself.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(_Function, njit(cache=True, nogil=True, **options)(function))


def inlined(function: _Function) -> _Function:
    """Compile a small function into its compiled callers: handing over a tuple of arrays costs more than it does."""
    return cast(_Function, njit(inline="always", nogil=True)(function))
