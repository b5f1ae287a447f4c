"""Factors: log-density terms over a few variables. A factor is data plus its closed-form value, never an algorithm.

A new family subclasses `Factor`, sets `kind` and is registered with an oracle of the same kind.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.model.domains import Integer
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable, as_expression, as_variables
from certimap.model.univariate import Univariate

MAX_DENSE_ENTRIES = 4096  # a sparse table up to this size is stored densely: the dense oracle is faster


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


@dataclass(eq=False)
class Ridge(Factor):
    """g(a.x + offset) for a univariate function g."""

    kind: ClassVar[str] = "ridge"
    expression: LinearExpression
    function: Univariate
    name: str = ""
    atoms: tuple[Atom, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.atoms = tuple(self.expression.terms)
        self.coefficients = np.array([self.expression.terms[a] for a in self.atoms])

    @property
    def signature(self) -> Hashable:
        return (self.function.kind, len(self.function.parameters), len(self.atoms))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "coefficients": self.coefficients,
            "offset": np.array(self.expression.constant),
            "parameters": np.array(self.function.parameters),
        }

    def value(self, y: NDArray[np.float64]) -> float:
        return self.function(float(self.coefficients @ y) + self.expression.constant)


@dataclass(eq=False)
class Gated(Factor):
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
        self.coefficients = np.array([self.expression.terms[a] for a in self.atoms[1:]])

    @property
    def signature(self) -> Hashable:
        return (self.function.kind, len(self.function.parameters), len(self.atoms))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "coefficients": self.coefficients,
            "offset": np.array(self.expression.constant),
            "parameters": np.array(self.function.parameters),
        }

    def value(self, y: NDArray[np.float64]) -> float:
        if y[0] < 0.5:
            return 0.0
        return self.function(float(self.coefficients @ y[1:]) + self.expression.constant)


@dataclass(eq=False)
class Parity(Factor):
    """0 where the number of ones among the items has the given parity, -inf elsewhere."""

    kind: ClassVar[str] = "parity"
    items: tuple[Atom, ...]
    odd: bool
    name: str = ""

    def __post_init__(self) -> None:
        self.atoms = self.items

    @property
    def signature(self) -> Hashable:
        return len(self.atoms)

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
class BlackBox(Factor):
    """A function known through the user's oracle only; its bounds are as valid as the oracle's."""

    kind: ClassVar[str] = "black_box"
    items: tuple[Atom, ...]
    oracle: UserOracle
    name: str = ""

    def __post_init__(self) -> None:
        self.atoms = self.items

    @property
    def signature(self) -> Hashable:
        return len(self.atoms)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def value(self, y: NDArray[np.float64]) -> float:
        return float(self.oracle.value(y))


# ---------------------------------------------------------------------------------------------------- constructors
def table(variables: Any, log_values: ArrayLike | Mapping[tuple[int, ...], float], *, name: str = "") -> Factor:
    """A table factor. `log_values` is an array with one axis per variable, or a mapping from joint states to values.

    A mapping excludes every state it does not list. Entries are finite or -inf.
    """
    scope = tuple(as_variables(variables))
    label = name or f"table({', '.join(v.name for v in scope)})"
    if len(set(scope)) != len(scope):
        raise ModelError(f"{label}: a variable occurs twice in the scope")
    shape = tuple(len(v.states) for v in scope)
    if isinstance(log_values, Mapping):
        return _sparse_table(scope, shape, log_values, name, label)
    values = np.array(log_values, dtype=float)
    if values.shape != shape:
        raise ModelError(f"{label}: the table has shape {values.shape}, the variables need {shape}")
    _check_log_values(label, values)
    return Table(scope, values, name)


def potts(a: Any, b: Any, weight: float = 1.0, *, name: str = "") -> Factor | list[Factor]:
    """weight * [a == b], element by element over arrays."""
    left, right = as_variables(a), as_variables(b)
    if len(left) != len(right):
        raise ModelError(f"potts: {len(left)} variables on the left and {len(right)} on the right")
    if not math.isfinite(weight):
        raise ModelError(f"potts: the weight must be finite, got {weight!r}")
    factors: list[Factor] = []
    for x, y in zip(left, right, strict=True):
        if x is y or x.states != y.states:
            raise ModelError(
                f"potts needs two variables with the same values: {x.name} is a {x.domain}, {y.name} a {y.domain}"
            )
        factors.append(Potts((x, y), float(weight), name))
    return factors[0] if isinstance(a, Variable) else factors


def ridge(expression: Any, function: Univariate, *, name: str = "") -> Ridge:
    """g(a.x + offset): for example `ridge(2 * w - v, gaussian(1.0))`."""
    inner = as_expression(expression)
    _check_range(name or f"ridge({inner})", inner, function)
    return Ridge(inner, function, name)


def separable(variables: Any, functions: Univariate | Sequence[Univariate], *, name: str = "") -> list[Ridge]:
    """sum_j g_j(x_j); one function may serve all variables."""
    xs = as_variables(variables)
    gs = [functions] * len(xs) if isinstance(functions, Univariate) else list(functions)
    if len(xs) != len(gs):
        raise ModelError(f"separable: {len(xs)} variables and {len(gs)} functions")
    return [ridge(x, g, name=name) for x, g in zip(xs, gs, strict=True)]


def gated(gate: Any, expression: Any, function: Univariate, *, name: str = "") -> Gated:
    """z * g(a.x + offset) with z a binary or an indicator `x.is_(v)`."""
    inner = as_expression(expression)
    _check_range(name or f"gated({inner})", inner, function)
    return Gated(_single_indicator("gated", gate), inner, function, name)


def parity(items: Any, odd: bool = True, *, name: str = "") -> Parity:
    """Excludes every point where the number of ones among binaries or indicators is not odd (or not even)."""
    flat = items.ravel().tolist() if isinstance(items, np.ndarray) else list(items)
    atoms = tuple(_single_indicator("parity", x) for x in flat)
    if not atoms:
        raise ModelError("parity needs at least one item")
    if len(set(atoms)) != len(atoms):
        raise ModelError("parity: an item occurs twice")
    return Parity(atoms, bool(odd), name)


def black_box(variables: Any, oracle: UserOracle, *, name: str = "") -> BlackBox:
    """A factor over the numeric values of the variables, known through `oracle.value` and `oracle.upper`."""
    for method in ("value", "upper"):
        if not callable(getattr(oracle, method, None)):
            raise ModelError(f"black_box: the oracle {oracle!r} has no method {method!r}")
    return BlackBox(tuple(v.numeric() for v in as_variables(variables)), oracle, name)


# ---------------------------------------------------------------------------------------------------------- checks
def _sparse_table(
    scope: tuple[Variable, ...],
    shape: tuple[int, ...],
    entries: Mapping[tuple[int, ...], float],
    name: str,
    label: str,
) -> Factor:
    if not entries:
        raise ModelError(f"{label}: no state is listed, so every point is excluded")
    positions = np.empty((len(entries), len(scope)), dtype=np.int64)
    for i, state in enumerate(entries):
        if len(state) != len(scope):
            raise ModelError(f"{label}: state {state!r} has {len(state)} entries for {len(scope)} variables")
        for j, (v, s) in enumerate(zip(scope, state, strict=True)):
            v.check(s)
            positions[i, j] = int(s) - v.states[0]
    values = np.array(list(entries.values()), dtype=float)
    _check_log_values(label, values)
    keep = values > -np.inf
    if math.prod(shape) <= MAX_DENSE_ENTRIES:
        dense = np.full(shape, -np.inf)
        dense[tuple(positions.T)] = values
        return Table(scope, dense, name)
    return SparseTable(scope, positions[keep], values[keep], name)


def _check_log_values(label: str, values: NDArray[np.float64]) -> None:
    if np.isnan(values).any():
        raise ModelError(f"{label}: a log-value is NaN; allowed are finite numbers and -inf")
    if (values == np.inf).any():
        raise ModelError(f"{label}: a log-value is +inf; allowed are finite numbers and -inf")
    if not (values > -np.inf).any():
        raise ModelError(f"{label}: every log-value is -inf, so every point is excluded")


def _check_range(label: str, expression: LinearExpression, function: Univariate) -> None:
    if not expression.terms:
        raise ModelError(f"{label}: the expression contains no variable")
    low, high = expression.bounds()
    if function.kind == "log" and low <= 0.0:
        raise ModelError(
            f"{label}: log needs a positive argument; its range is [{low:g}, {high:g}]. Give the variables a positive "
            "lower bound (log 0 = -inf has no finite multiplier)"
        )
    if function.kind == "poisson" and high > 700.0:
        raise ModelError(f"{label}: exp overflows on the argument's range [{low:g}, {high:g}]; give narrower bounds")


def _single_indicator(what: str, given: Any) -> Atom:
    if isinstance(given, Variable) and given.domain == Integer(0, 1):
        return given.numeric()
    if isinstance(given, LinearExpression) and len(given.terms) == 1 and given.constant == 0.0:
        ((atom, coefficient),) = given.terms.items()
        if coefficient == 1.0 and atom.is_indicator:
            return atom
    raise ModelError(f"{what} takes binary variables or indicators such as x.is_(2), got {given!r}")
