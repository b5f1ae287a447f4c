"""Variables, their atoms (numeric coordinates), linear expressions over atoms, and constraints as named rows.

Everything that the solver sees is linear in atoms or a factor of atoms, so that constraints of every kind compose:
a constraint is a tuple of rows  lower <= sum coefficient * atom <= upper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from certimap.model.checks import finite, is_finite, shown
from certimap.model.domains import (
    Categorical,
    Domain,
    Integer,
    PositiveDefinite,
    Real,
    Simplex,
    is_integer,
    triangle_index,
    triangle_position,
)
from certimap.model.errors import ModelError

TOLERANCE = 1e-9  # violation of a row, relative to its scale, that counts as none
MAX_CODED_VALUES = 10_000  # one-hot coding of an integer happens on demand; beyond this a table over it is a mistake


class Atom(NamedTuple):
    """One numeric coordinate of a variable.

    `key` is None for the value of an integer or real, the state for the indicator [x = state] of a categorical or
    integer, the part for a simplex, and the position in the row-wise lower triangle for a matrix.
    """

    variable: Variable
    key: int | None

    @property
    def is_indicator(self) -> bool:
        return self.key is not None and isinstance(self.variable.domain, Categorical | Integer)

    def at(self, value: Any) -> float:
        """The coordinate when the variable takes `value`."""
        if self.key is None:
            return float(value)
        if self.is_indicator:
            return 1.0 if int(value) == self.key else 0.0
        if isinstance(self.variable.domain, Simplex):
            return float(np.asarray(value)[self.key])
        return float(np.asarray(value)[triangle_position(self.key)])

    def bounds(self) -> tuple[float, float]:
        """The interval that the domain gives the coordinate."""
        match self.variable.domain:
            case Integer(lower, upper) | Real(lower, upper) if self.key is None:
                return float(lower), float(upper)
            case Simplex(size, lower):
                return lower, 1.0 - (size - 1) * lower
            case PositiveDefinite(_, lower, upper):
                row, column = triangle_position(self.key or 0)
                reach = 0.5 * (upper - lower)  # |X_ij| <= (largest - smallest eigenvalue) / 2 off the diagonal
                return (lower, upper) if row == column else (-reach, reach)
            case _:
                return 0.0, 1.0

    def __str__(self) -> str:
        name = self.variable.name
        if self.key is None:
            return name
        if self.is_indicator:
            return f"[{name}={self.key}]"
        if isinstance(self.variable.domain, Simplex):
            return f"{name}[{self.key}]"
        row, column = triangle_position(self.key)
        return f"{name}[{row},{column}]"


class LinearExpression:
    """constant + sum of coefficient * atom; compare it with a number or an expression to make a constraint."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: Mapping[Atom, float], constant: float = 0.0) -> None:
        self.terms = {a: float(c) for a, c in terms.items() if c != 0.0}
        self.constant = float(constant)

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest value over the box of the atoms."""
        low = high = self.constant
        for atom, c in self.terms.items():
            ends = [c * b for b in atom.bounds()]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __add__(self, other: object) -> LinearExpression:
        right = as_expression(other)
        terms = dict(self.terms)
        for atom, c in right.terms.items():
            terms[atom] = terms.get(atom, 0.0) + c
        return LinearExpression(terms, self.constant + right.constant)

    __radd__ = __add__

    def __neg__(self) -> LinearExpression:
        return self * -1.0

    def __sub__(self, other: object) -> LinearExpression:
        return self + -as_expression(other)

    def __rsub__(self, other: object) -> LinearExpression:
        return -self + other

    def __mul__(self, factor: float) -> LinearExpression:
        if not is_finite(factor):
            raise ModelError(
                f"a linear expression can be multiplied by a number only, and a finite one, got {shown(factor)}"
            )
        return LinearExpression({a: c * float(factor) for a, c in self.terms.items()}, self.constant * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> LinearExpression:
        if not is_finite(divisor) or divisor == 0:
            raise ModelError(
                f"a linear expression can be divided by a number only, finite and not 0, got {shown(divisor)}"
            )
        return LinearExpression({a: c / divisor for a, c in self.terms.items()}, self.constant / divisor)

    def __le__(self, other: object) -> Constraint:
        return _compare(self, other, -math.inf, 0.0, "<=")

    def __ge__(self, other: object) -> Constraint:
        return _compare(self, other, 0.0, math.inf, ">=")

    def __eq__(self, other: object) -> Any:  # a Constraint; expressions are therefore not hashable
        return _compare(self, other, 0.0, 0.0, "==")

    def __str__(self) -> str:
        parts = [f"{c:+g} {a}" for a, c in self.terms.items()]
        if self.constant or not parts:
            parts.append(f"{self.constant:+g}")
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<linear: {self}>"


class Variable:
    """A named unknown of a model; create it through the model, for example `model.categorical("a", 3)`."""

    __slots__ = ("domain", "name", "owner")

    def __init__(self, name: str, domain: Domain, owner: object) -> None:
        self.name = name
        self.domain = domain
        self.owner = owner  # the model; a constraint between variables of two models is an error

    @property
    def states(self) -> range:
        """The values of a categorical or integer variable."""
        if isinstance(self.domain, Categorical | Integer):
            return self.domain.states
        raise ModelError(f"{self.name} is a {self.domain}; it has no finite list of values")

    def indicators(self) -> tuple[Atom, ...]:
        """The one-hot coordinates [x = v], in the order of `states`."""
        if len(self.states) > MAX_CODED_VALUES:
            raise ModelError(
                f"{self.name} has {len(self.states)} values; tables and logical constraints take variables of at most "
                f"{MAX_CODED_VALUES} values. Use linear, ridge or separable factors, or give narrower bounds"
            )
        return tuple(Atom(self, v) for v in self.states)

    def numeric(self) -> Atom:
        """The coordinate that is the variable's numeric value (of a binary: the indicator of 1)."""
        match self.domain:
            case Integer(lower=0, upper=1):
                return Atom(self, 1)
            case Integer() | Real():
                return Atom(self, None)
            case _:
                raise ModelError(
                    f"{self.name} is a {self.domain} and has no numeric value: use {self.name}.is_(value) for a state "
                    f"or {self.name}[i] for a component"
                )

    def coordinates(self) -> tuple[Atom, ...]:
        """The coordinates that describe the variable in full."""
        match self.domain:
            case Categorical():
                return self.indicators()
            case Simplex(size=k):
                return tuple(Atom(self, i) for i in range(k))
            case PositiveDefinite(order=d):
                return tuple(Atom(self, i) for i in range(d * (d + 1) // 2))
            case _:
                return (self.numeric(),)

    def check(self, value: Any) -> None:
        if not self.domain.contains(value):
            raise ModelError(f"{self.name} is a {self.domain}; got {value!r}")

    def state(self, value: int | str) -> int:
        """The state that a number or a label stands for."""
        labels = self.domain.labels if isinstance(self.domain, Categorical) else None
        if labels and isinstance(value, str) and value in labels:
            return labels.index(value)
        if not is_integer(value) or int(value) not in self.states:
            named = f" ({', '.join(labels)})" if labels else ""
            raise ModelError(f"{self.name} is a {self.domain}{named}; got {value!r}")
        return int(value)

    def is_(self, value: int | str) -> LinearExpression:
        """The indicator of `variable == value` (a state or its label), for expressions and logical constraints."""
        return LinearExpression({Atom(self, self.state(value)): 1.0})

    def __getitem__(self, key: int | tuple[int, int]) -> LinearExpression:
        match self.domain:
            case Simplex(size=k) if isinstance(key, int) and 0 <= key < k:
                return LinearExpression({Atom(self, key): 1.0})
            case PositiveDefinite(order=d) if (
                isinstance(key, tuple) and len(key) == 2 and 0 <= min(key) <= max(key) < d
            ):
                return LinearExpression({Atom(self, triangle_index(*key)): 1.0})
            case _:
                raise ModelError(f"{self.name} is a {self.domain}; it has no component {key!r}")

    def __iter__(self) -> Any:
        raise TypeError(f"variable {self.name} is not iterable")

    def __add__(self, other: object) -> LinearExpression:
        return as_expression(self) + other

    __radd__ = __add__

    def __sub__(self, other: object) -> LinearExpression:
        return as_expression(self) - other

    def __rsub__(self, other: object) -> LinearExpression:
        return -as_expression(self) + other

    def __mul__(self, factor: float) -> LinearExpression:
        return as_expression(self) * factor

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> LinearExpression:
        return as_expression(self) / divisor

    def __neg__(self) -> LinearExpression:
        return -as_expression(self)

    def __le__(self, other: object) -> Constraint:
        return as_expression(self) <= other

    def __ge__(self, other: object) -> Constraint:
        return as_expression(self) >= other

    def __repr__(self) -> str:
        return f"<{self.name}: {self.domain}>"


@dataclass(frozen=True)
class Row:
    """lower <= sum coefficient * atom <= upper."""

    terms: tuple[tuple[Atom, float], ...]
    lower: float
    upper: float

    def activity(self, values: Mapping[str, Any]) -> float:
        return math.fsum(c * a.at(values[a.variable.name]) for a, c in self.terms)

    def activity_bounds(self) -> tuple[float, float]:
        total: dict[Atom, float] = {}
        for atom, c in self.terms:  # a link of a variable with itself names an atom twice
            total[atom] = total.get(atom, 0.0) + c
        return LinearExpression(total).bounds()

    @property
    def scale(self) -> float:
        """What a violation is relative to."""
        return max(1.0, max((abs(c) for _, c in self.terms), default=1.0))

    def violation(self, values: Mapping[str, Any]) -> float:
        """By how much the row is violated, relative to its scale; 0 when satisfied."""
        activity = self.activity(values)
        return max(self.lower - activity, activity - self.upper, 0.0) / self.scale


@dataclass(frozen=True)
class Constraint:
    """A named set of rows that hold together; `links` marks pairwise equality (+1) or difference (-1) of variables."""

    name: str
    rows: tuple[Row, ...]
    links: tuple[tuple[Variable, Variable, int], ...] = ()

    def named(self, name: str) -> Constraint:
        """The same constraint under a name of the user's choice, used in messages and conflict reports."""
        return replace(self, name=name)

    def satisfied(self, values: Mapping[str, Any], tolerance: float = TOLERANCE) -> bool:
        return all(row.violation(values) <= tolerance for row in self.rows)

    def variables(self) -> list[Variable]:
        return list(dict.fromkeys(a.variable for row in self.rows for a, _ in row.terms))

    def __bool__(self) -> bool:
        raise ModelError(f"constraint {self.name!r} has no truth value; pass it to model.constrain(...)")


def as_expression(given: object) -> LinearExpression:
    """A number, a variable or an expression as an expression."""
    if isinstance(given, LinearExpression):
        return given
    if isinstance(given, Variable):
        return LinearExpression({given.numeric(): 1.0})
    if is_finite(given):
        return LinearExpression({}, float(cast(float, given)))
    raise ModelError(f"expected a finite number, a variable or a linear expression, got {shown(given)}")


def linear(terms: Any, constant: float = 0.0) -> LinearExpression:
    """A linear expression from `{variable: coefficient}`, or from pairs (variable or expression, coefficient).

    Added to a model it is a factor; compared (`linear(...) <= 4`) it is a constraint.
    """
    pairs: Iterable[Any] = terms.items() if isinstance(terms, Mapping) else [terms] if _is_term(terms) else terms
    parts = []
    for pair in pairs:
        if isinstance(pair, tuple) and len(pair) == 2:
            part, coefficient = pair
            parts.append(as_expression(part) * finite(f"the coefficient of {part!r}", coefficient))
        else:
            parts.append(as_expression(pair))
    return total(parts) + constant


def total(parts: Iterable[LinearExpression]) -> LinearExpression:
    """The sum, in time proportional to the number of terms."""
    terms: dict[Atom, float] = {}
    constants = []
    for part in parts:
        constants.append(part.constant)
        for atom, c in part.terms.items():
            terms[atom] = terms.get(atom, 0.0) + c
    return LinearExpression(terms, math.fsum(constants))


def as_variables(given: Any) -> list[Variable]:
    """Flatten a variable, or a sequence or array of variables."""
    if isinstance(given, Variable):
        return [given]
    if isinstance(given, np.ndarray):
        return as_variables(given.ravel().tolist())
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [v for part in given for v in as_variables(part)]
    raise ModelError(f"expected a variable or an array of variables, got {given!r}")


def _is_term(terms: Any) -> bool:
    return isinstance(terms, Variable | LinearExpression)


def _compare(left: LinearExpression, right: object, lower: float, upper: float, sign: str) -> Constraint:
    difference = left - as_expression(right)
    shift = difference.constant
    row = Row(tuple(difference.terms.items()), lower - shift, upper - shift)
    shown = LinearExpression(difference.terms)
    return Constraint(f"{shown} {sign} {-shift:g}", (row,))
