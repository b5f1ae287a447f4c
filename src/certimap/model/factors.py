"""Factors: log-density terms over a few variables. A factor is data plus its closed-form value, never an algorithm.

A new family subclasses `Factor`, sets `kind` and is registered with an oracle of the same kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable
from certimap.model.univariate import Univariate


def joint_state(scope: tuple[Variable, ...], values: Mapping[str, Any]) -> tuple[int, ...]:
    """Positions along the axes of a table over `scope`."""
    return tuple(int(values[v.name]) - v.states[0] for v in scope)


def _decoded(scope: tuple[Variable, ...], y: NDArray[np.float64]) -> tuple[int, ...]:
    """The joint state that one-hot coordinates stand for."""
    starts = np.cumsum([0, *(len(v.states) for v in scope)])
    return tuple(int(np.argmax(y[a:b])) for a, b in pairwise(starts))


class Factor(ABC):
    """theta_f: a function of the atoms it lists, evaluated in closed form."""

    kind: ClassVar[str]
    atoms: tuple[Atom, ...]
    name: str = ""

    @abstractmethod
    def value(self, y: NDArray[np.float64]) -> float:
        """theta_f at the atoms' values `y` (in the order of `atoms`), -inf where the point is excluded."""

    @property
    @abstractmethod
    def signature(self) -> Hashable:
        """Factors of one kind and one signature have arrays of equal shapes and are stacked into one batch."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The defining numbers, stacked over a batch by the compiler and hashed into the model's fingerprint."""

    def value_at(self, values: Mapping[str, Any]) -> float:
        """theta_f at an assignment of variable names to values."""
        return self.value(np.array([a.at(values[a.variable.name]) for a in self.atoms]))

    def variables(self) -> list[Variable]:
        return list(dict.fromkeys(a.variable for a in self.atoms))

    def label(self) -> str:
        names = [v.name for v in self.variables()]
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        return self.name or f"{self.kind}({shown})"


@dataclass(eq=False)
class Table(Factor):
    """Log-values for every joint state; -inf excludes a state."""

    kind: ClassVar[str] = "table"
    scope: tuple[Variable, ...]
    log_values: NDArray[np.float64]
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for v in self.scope for a in v.indicators())

    @property
    def signature(self) -> Hashable:
        return self.log_values.shape

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"log_values": self.log_values}

    def value(self, y: NDArray[np.float64]) -> float:
        return float(self.log_values[_decoded(self.scope, y)])

    def value_at(self, values: Mapping[str, Any]) -> float:
        return float(self.log_values[joint_state(self.scope, values)])


@dataclass(eq=False)
class SparseTable(Factor):
    """Log-values for the listed joint states only; every other state is excluded (-inf)."""

    kind: ClassVar[str] = "sparse_table"
    scope: tuple[Variable, ...]
    positions: NDArray[np.int64]  # (states, arity): positions along each axis
    log_values: NDArray[np.float64]
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for v in self.scope for a in v.indicators())
        self._row_of = {tuple(row): i for i, row in enumerate(self.positions.tolist())}

    @property
    def signature(self) -> Hashable:
        return (tuple(len(v.states) for v in self.scope), len(self.log_values))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"positions": self.positions, "log_values": self.log_values}

    def value(self, y: NDArray[np.float64]) -> float:
        return self._at(_decoded(self.scope, y))

    def value_at(self, values: Mapping[str, Any]) -> float:
        return self._at(joint_state(self.scope, values))

    def _at(self, state: tuple[int, ...]) -> float:
        row = self._row_of.get(state)
        return -math.inf if row is None else float(self.log_values[row])


@dataclass(eq=False)
class Potts(Factor):
    """weight * [a == b]: a reward (weight > 0) or a penalty (weight < 0) for equal states."""

    kind: ClassVar[str] = "potts"
    scope: tuple[Variable, Variable]
    weight: float
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(a for v in self.scope for a in v.indicators())

    @property
    def signature(self) -> Hashable:
        return len(self.atoms)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"weight": np.array(self.weight)}

    def value(self, y: NDArray[np.float64]) -> float:
        k = len(y) // 2
        return self.weight if int(np.argmax(y[:k])) == int(np.argmax(y[k:])) else 0.0

    def value_at(self, values: Mapping[str, Any]) -> float:
        a, b = self.scope
        return self.weight if int(values[a.name]) == int(values[b.name]) else 0.0


class Curve(Factor):
    """What ridges and gated ridges share: a univariate function g of the argument s = a.x + offset."""

    expression: LinearExpression
    function: Univariate

    @cached_property
    def coefficients(self) -> NDArray[np.float64]:
        return np.array(list(self.expression.terms.values()))

    @property
    def signature(self) -> Hashable:
        return (self.function.kind, len(self.function.parameters), len(self.atoms))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "coefficients": self.coefficients,
            "offset": np.array(self.expression.constant),
            "parameters": np.array(self.function.parameters),
        }

    def at_argument(self, x: NDArray[np.float64]) -> float:
        """g(a.x + offset)."""
        return self.function(float(self.coefficients @ x) + self.expression.constant)


@dataclass(eq=False)
class Ridge(Curve):
    """g(a.x + offset) for a univariate function g."""

    kind: ClassVar[str] = "ridge"
    expression: LinearExpression
    function: Univariate
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(self.expression.terms)

    def value(self, y: NDArray[np.float64]) -> float:
        return self.at_argument(y)


@dataclass(eq=False)
class Gated(Curve):
    """z * g(a.x + offset): the ridge counts only where the indicator z is 1. The first atom is z."""

    kind: ClassVar[str] = "gated"
    gate: Atom
    expression: LinearExpression
    function: Univariate
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.gate in self.expression.terms:
            raise ModelError(f"gated: the gate {self.gate} must not occur in the expression it gates")
        self.atoms = (self.gate, *self.expression.terms)

    def value(self, y: NDArray[np.float64]) -> float:
        return 0.0 if y[0] < 0.5 else self.at_argument(y[1:])


class OfItems(Factor):
    """A factor of atoms that the user lists."""

    items: tuple[Atom, ...]

    def __post_init__(self) -> None:
        self.atoms = self.items

    @property
    def signature(self) -> Hashable:
        return len(self.atoms)


@dataclass(eq=False)
class Parity(OfItems):
    """0 where the number of ones among the items has the given parity, -inf elsewhere."""

    kind: ClassVar[str] = "parity"
    items: tuple[Atom, ...]
    odd: bool
    name: str = ""

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"odd": np.array(int(self.odd))}

    def value(self, y: NDArray[np.float64]) -> float:
        return 0.0 if (round(float(y.sum())) % 2 == 1) == self.odd else -math.inf


class UserOracle(Protocol):
    """What `black_box` needs: values at points, and certified upper bounds over boxes."""

    def value(self, x: NDArray[np.float64]) -> float:
        """theta at a point."""

    def upper(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
        """A number that theta exceeds nowhere in the box; it must approach the value as the box shrinks."""


@dataclass(eq=False)
class BlackBox(OfItems):
    """A function known through the user's oracle only; its bounds are as valid as the oracle's."""

    kind: ClassVar[str] = "black_box"
    items: tuple[Atom, ...]
    oracle: UserOracle
    name: str = ""

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def value(self, y: NDArray[np.float64]) -> float:
        return float(self.oracle.value(y))
