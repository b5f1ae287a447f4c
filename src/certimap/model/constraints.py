"""Constructors of hard constraints. Arrays broadcast; every constructor returns one named constraint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from certimap.model.domains import Categorical, Integer, is_integer
from certimap.model.errors import ModelError
from certimap.model.expressions import (
    MAX_CODED_VALUES,
    Atom,
    Constraint,
    LinearExpression,
    Row,
    Variable,
    as_expression,
    as_variables,
    total,
)


def must_link(a: Any, b: Any) -> Constraint:
    """Variables (or arrays, element by element) take equal values."""
    return _link("must_link", a, b, +1, _equal_rows)


def cannot_link(a: Any, b: Any) -> Constraint:
    """Variables (or arrays, element by element) take different values."""
    return _link("cannot_link", a, b, -1, _different_rows)


def fix(variable: Any, value: Any) -> Constraint:
    """Variables (or arrays) take the given values; of a simplex or matrix, every component is fixed."""
    rows: list[Row] = []
    variables = as_variables(variable)
    values = _values_for(variables, value)
    for x, v in zip(variables, values, strict=True):
        if isinstance(x.domain, Categorical | Integer) and len(x.states) <= MAX_CODED_VALUES:
            rows.append(Row(((Atom(x, x.state(v)), 1.0),), 1.0, 1.0))
        else:
            x.check(v)
            rows.extend(Row(((a, 1.0),), a.at(v), a.at(v)) for a in x.coordinates())
    shown = value if np.ndim(value) == 0 else "..."
    return Constraint(f"fix({_label(variable)}, {shown})", tuple(rows))


def implies(premise: Any, conclusion: Any) -> Constraint:
    """If the premise is 1, so is the conclusion. Both are binaries or indicators `x.is_(v)`; arrays broadcast."""
    rows = []
    for p, q in _pairs(premise, conclusion):
        left, right = _indicator(p), _indicator(q)
        rows.append(_row(left - right, -math.inf, 0.0))
    return Constraint(f"implies({_label(premise)}, {_label(conclusion)})", tuple(rows))


def at_most(count: int, items: Any, value: int | str = 1) -> Constraint:
    """At most `count` of the items equal `value` (items that are indicators already count as they are)."""
    return _cardinality("at_most", count, items, value, -math.inf, count)


def at_least(count: int, items: Any, value: int | str = 1) -> Constraint:
    """At least `count` of the items equal `value`."""
    return _cardinality("at_least", count, items, value, count, math.inf)


def exactly(count: int, items: Any, value: int | str = 1) -> Constraint:
    """Exactly `count` of the items equal `value`."""
    return _cardinality("exactly", count, items, value, count, count)


def all_of(result: Any, items: Any) -> Constraint:
    """The binary or indicator `result` is the conjunction (and) of the items."""
    y, xs = _indicator(result), [_indicator(x) for x in _flatten(items)]
    rows = [_row(y - x, -math.inf, 0.0) for x in xs]
    rows.append(_row(total(xs) - y, -math.inf, len(xs) - 1.0))
    return Constraint(f"all_of({_label(result)}, {len(xs)} items)", tuple(rows))


def any_of(result: Any, items: Any) -> Constraint:
    """The binary or indicator `result` is the disjunction (or) of the items."""
    y, xs = _indicator(result), [_indicator(x) for x in _flatten(items)]
    rows = [_row(x - y, -math.inf, 0.0) for x in xs]
    rows.append(_row(y - total(xs), -math.inf, 0.0))
    return Constraint(f"any_of({_label(result)}, {len(xs)} items)", tuple(rows))


def check_possible(constraint: Constraint) -> None:
    """Refuse a constraint that no point of the variables' domains satisfies."""
    for row in constraint.rows:
        low, high = row.activity_bounds()
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        if low > row.upper + slack or high < row.lower - slack:
            raise ModelError(
                f"constraint {constraint.name!r} can never hold: its left side lies in [{low:g}, {high:g}], "
                f"required is [{row.lower:g}, {row.upper:g}]"
            )
    for a, b, sign in constraint.links:
        if sign < 0 and a is b:
            raise ModelError(f"constraint {constraint.name!r} can never hold: {a.name} cannot differ from itself")


def no_constraint(caller: str, given: object) -> ModelError:
    """The error for something else in the place of a constraint."""
    compared = isinstance(given, bool | np.bool_)  # == of two single variables asks whether they are the same object
    hint = "; write must_link(a, b) or a - b == 0 for variables, fix(a, 1) for a value" if compared else ""
    return ModelError(f"{caller} takes constraints such as must_link(a, b), got {given!r}{hint}")


# -------------------------------------------------------------------------------------------------- building blocks
def _row(expression: LinearExpression, lower: float, upper: float) -> Row:
    shift = expression.constant
    return Row(tuple(expression.terms.items()), lower - shift, upper - shift)


def _link(verb: str, a: Any, b: Any, sign: int, rows_of: Callable[[Variable, Variable], Iterable[Row]]) -> Constraint:
    pairs = _pairs(a, b)
    for x, y in pairs:
        for v in (x, y):
            if not isinstance(v, Variable):
                raise ModelError(f"{verb} takes variables, got {v!r}")
    rows = tuple(row for x, y in pairs for row in rows_of(x, y))
    return Constraint(f"{verb}({_label(a)}, {_label(b)})", rows, tuple((x, y, sign) for x, y in pairs))


def _equal_rows(x: Variable, y: Variable) -> list[Row]:
    if isinstance(x.domain, Categorical | Integer) and isinstance(y.domain, Categorical | Integer):
        if isinstance(x.domain, Integer) and isinstance(y.domain, Integer) and max(len(x.states), len(y.states)) > 2:
            return [_row(as_expression(x) - y, 0.0, 0.0)]
        rows = []
        for v in sorted({*x.states, *y.states}):
            terms = tuple((Atom(q, v), s) for q, s in ((x, 1.0), (y, -1.0)) if v in q.states)
            rows.append(Row(terms, 0.0, 0.0))
        return rows
    if x.domain != y.domain and type(x.domain) is not type(y.domain):
        raise ModelError(f"must_link needs variables of one kind: {x.name} is a {x.domain}, {y.name} is a {y.domain}")
    left, right = x.coordinates(), y.coordinates()
    if len(left) != len(right):
        raise ModelError(f"must_link needs variables of one size: {x.name} is a {x.domain}, {y.name} is a {y.domain}")
    return [Row(((p, 1.0), (q, -1.0)), 0.0, 0.0) for p, q in zip(left, right, strict=True)]


def _different_rows(x: Variable, y: Variable) -> list[Row]:
    for v in (x, y):
        if not isinstance(v.domain, Categorical | Integer):
            raise ModelError(f"cannot_link takes categorical or integer variables; {v.name} is a {v.domain}")
    common = [v for v in x.states if v in y.states]
    x.indicators(), y.indicators()  # refuse huge integers, with the reason
    return [Row(((Atom(x, v), 1.0), (Atom(y, v), 1.0)), -math.inf, 1.0) for v in common]


def _cardinality(verb: str, count: int, items: Any, value: int | str, lower: float, upper: float) -> Constraint:
    flat = _flatten(items)
    if not is_integer(count) or count < 0:
        raise ModelError(f"{verb} takes a whole number of items >= 0, got {count!r}")
    counted = total(x.is_(value) if isinstance(x, Variable) else _indicator(x) for x in flat)
    return Constraint(f"{verb}({count}, {_label(items)}, value={value})", (_row(counted, lower, upper),))


def _indicator(given: Any) -> LinearExpression:
    """A 0/1 expression: a binary variable, an indicator, or one minus such."""
    if isinstance(given, Variable):
        if given.domain == Integer(0, 1):
            return as_expression(given)
        raise ModelError(f"{given.name} is a {given.domain}, not a binary; use {given.name}.is_(value)")
    if isinstance(given, LinearExpression) and all(a.is_indicator for a in given.terms):
        shape = (*given.terms.values(), given.constant)
        if shape in ((1.0, 0.0), (-1.0, 1.0), (0.0,), (1.0,)):
            return given
    raise ModelError(f"expected a binary variable or an indicator such as x.is_(2), got {given!r}")


def _flatten(items: Any) -> list[Any]:
    if isinstance(items, np.ndarray):
        return _flatten(items.ravel().tolist())
    if isinstance(items, list | tuple):
        return [x for part in items for x in _flatten(part)]
    return [items]


def _pairs(a: Any, b: Any) -> list[tuple[Any, Any]]:
    left, right = _as_array(a), _as_array(b)
    try:
        left, right = np.broadcast_arrays(left, right)
    except ValueError:
        raise ModelError(f"arrays of shapes {left.shape} and {right.shape} do not match element by element") from None
    return list(zip(left.ravel().tolist(), right.ravel().tolist(), strict=True))


def _as_array(given: Any) -> np.ndarray:
    if isinstance(given, np.ndarray):
        return given
    flat = _flatten(given)
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out if isinstance(given, list | tuple) else out.reshape(())


def _values_for(variables: list[Variable], value: Any) -> list[Any]:
    if len(variables) == 1:
        return [value]
    values = list(np.ravel(value)) if np.ndim(value) else [value] * len(variables)
    if len(values) != len(variables):
        raise ModelError(f"fix got {len(variables)} variables and {len(values)} values")
    return values


def _label(given: Any) -> str:
    if isinstance(given, Variable):
        return given.name
    if isinstance(given, LinearExpression):
        return str(given).removeprefix("+1 ")
    flat = _flatten(given)
    return (
        f"{_label(flat[0])} .. {_label(flat[-1])}" if flat and len(flat) > 1 else _label(flat[0]) if flat else "nothing"
    )
