"""Domains of variables: what values a variable may take, and the box of each of its coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from certimap.model.checks import is_finite


@dataclass(frozen=True)
class Categorical:
    """One of `size` unordered states, written 0 .. size-1; `labels` name them for readers of the model."""

    size: int
    labels: tuple[str, ...] | None = None

    @property
    def states(self) -> range:
        return range(self.size)

    def contains(self, value: Any) -> bool:
        return is_integer(value) and 0 <= int(value) < self.size

    def __str__(self) -> str:
        return f"categorical with values 0..{self.size - 1}"


@dataclass(frozen=True)
class Integer:
    """A whole number between `lower` and `upper`; a binary is the integer between 0 and 1."""

    lower: int
    upper: int

    @property
    def states(self) -> range:
        return range(self.lower, self.upper + 1)

    def contains(self, value: Any) -> bool:
        return is_integer(value) and self.lower <= int(value) <= self.upper

    def __str__(self) -> str:
        return f"integer in {self.lower}..{self.upper}"


@dataclass(frozen=True)
class Real:
    """A real number in the closed interval [lower, upper]."""

    lower: float
    upper: float

    def contains(self, value: Any) -> bool:
        return is_finite(value) and self.lower <= value <= self.upper

    def __str__(self) -> str:
        return f"real in [{self.lower:g}, {self.upper:g}]"


@dataclass(frozen=True)
class Simplex:
    """A vector of `size` numbers, each at least `lower`, that sum to one (to 1e-9)."""

    size: int
    lower: float = 0.0

    def contains(self, value: Any) -> bool:
        v = np.asarray(value, float)
        if v.shape != (self.size,):
            return False
        return bool((v >= self.lower - 1e-12).all()) and abs(float(v.sum()) - 1.0) <= 1e-9

    def __str__(self) -> str:
        return f"simplex of {self.size} parts, each at least {self.lower:g}"


@dataclass(frozen=True)
class PositiveDefinite:
    """A symmetric matrix of order `order` with all eigenvalues in [lower, upper], 0 < lower (to 1e-9 relative)."""

    order: int
    lower: float
    upper: float

    def contains(self, value: Any) -> bool:
        m = np.asarray(value, float)
        if m.shape != (self.order, self.order) or not np.array_equal(m, m.T):
            return False
        eigenvalues = np.linalg.eigvalsh(m)
        slack = 1e-9 * max(1.0, self.upper)
        return bool(eigenvalues[0] >= self.lower - slack and eigenvalues[-1] <= self.upper + slack)

    def __str__(self) -> str:
        return f"symmetric {self.order}x{self.order} matrix with eigenvalues in [{self.lower:g}, {self.upper:g}]"


Domain: TypeAlias = Categorical | Integer | Real | Simplex | PositiveDefinite


def is_integer(value: Any) -> bool:
    """Whether the value is a whole number, written as an int, a bool or an integral float."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return True
    return isinstance(value, float | np.floating) and float(value).is_integer()


def triangle_position(index: int) -> tuple[int, int]:
    """Row and column of entry `index` of a lower triangle stored row by row."""
    row = (math.isqrt(8 * index + 1) - 1) // 2
    return row, index - row * (row + 1) // 2


def triangle_index(row: int, column: int) -> int:
    """Position of entry (row, column) of a symmetric matrix in its lower triangle stored row by row."""
    row, column = max(row, column), min(row, column)
    return row * (row + 1) // 2 + column
