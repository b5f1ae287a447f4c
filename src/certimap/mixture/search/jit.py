"""Decorators of the compiled search."""

from certimap._numeric.jit import entry, kernel

__all__ = ["entry", "kernel"]
