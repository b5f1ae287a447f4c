"""The shared library of the pricing kernel and the C structures it exchanges.

The package's build compiles `cpu.cpp` for several instruction sets (see setup.py); the best one that the processor
has is loaded. All of them compute the same numbers, bit for bit.
"""

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

INTEGERS = ("dimension", "form", "items", "groups", "integral", "flips", "max_rounds")
VARIANTS = ("_cpu", "_cpu_avx2")  # by level of certimap_instruction_set


class PricingInput(ctypes.Structure):
    """One pricing problem; arrays are borrowed for the duration of the call."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in INTEGERS),
        *((name, ctypes.c_double) for name in ("a0", "b0", "v", "Nt", "target", "slack", "size_min", "size_max")),
        *((name, ctypes.c_void_p) for name in ("y", "price", "weight", "factor", "prior_mean")),
        *((name, ctypes.c_void_p) for name in ("conflict_start", "conflict_items")),
    )


class OpenList(ctypes.Structure):
    """Open nodes: boxes, bounds, bit sets of the items inside and free, and the entry of the record they belong to."""

    _fields_ = (
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("lo", "hi", "bound", "inside", "free", "origin")),
    )


class Pool(ctypes.Structure):
    """Nodes of a batch as columns."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("real", "word", "mark")),
        ("capacity", ctypes.c_int64),
    )


class BatchShape(ctypes.Structure):
    """Sizes that depend on the dimension and on whether items are groups."""

    _fields_ = tuple((name, ctypes.c_int32) for name in ("problem_bytes", "real_rows", "record"))


class Limits(ctypes.Structure):
    """When to stop; negative means no limit."""

    _fields_ = (
        ("max_nodes", ctypes.c_int64),
        ("seconds", ctypes.c_double),
        ("interrupt", ctypes.c_void_p),
        ("threads", ctypes.c_int32),
        ("opening", ctypes.c_int32),
        ("enumerate", ctypes.c_int32),
        ("max_found", ctypes.c_int64),
    )


class Summary(ctypes.Structure):
    """What a finished search holds."""

    _fields_ = (
        ("status", ctypes.c_int32),
        ("bound", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("nodes", "open", "found", "record")),
    )


class SplitRecord(ctypes.Structure):
    """One node of the recorded part of the tree; `coordinate` is -1 for an item, -2 if the node was not split."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("parent", "side", "coordinate", "item")),
        ("cut", ctypes.c_double),
        ("nodes", ctypes.c_int64),
    )


@cache
def library() -> ctypes.CDLL:
    """The kernel for this processor; ImportError if the extension was not built."""
    plain = _load(VARIANTS[0])
    level = min(int(plain.certimap_instruction_set()), len(VARIANTS) - 1)
    for name in reversed(VARIANTS[1 : level + 1]):
        try:
            return _load(name)
        except ImportError:
            continue
    return plain


def _load(name: str) -> ctypes.CDLL:
    folder = Path(__file__).parent
    for suffix in EXTENSION_SUFFIXES:
        path = folder / (name + suffix)
        if path.exists():
            loaded = ctypes.CDLL(str(path))
            loaded.certimap_pricing_run.restype = ctypes.c_void_p
            return loaded
    raise ImportError(
        f"the compiled kernel {name} is missing from {folder}: install the package with a C++17 compiler "
        "(pip install .), or build it in place with python setup.py build_ext --inplace"
    )
