"""Constructors of factors, with the checks that turn a wrong factor into a clear error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certimap.model.checks import LARGEST, finite
from certimap.model.domains import Integer
from certimap.model.errors import ModelError
from certimap.model.expressions import Atom, LinearExpression, Variable, as_expression, as_variables
from certimap.model.factors import BlackBox, Factor, Gated, Parity, Potts, Ridge, SparseTable, Table, UserOracle
from certimap.model.univariate import Univariate

MAX_DENSE_ENTRIES = 4096  # a sparse table up to this size is stored densely: the dense oracle is faster


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
    values = _numbers(label, log_values)
    if values.shape != shape:
        raise ModelError(f"{label}: the table has shape {values.shape}, the variables need {shape}")
    _check_log_values(label, values)
    return Table(scope, values, name)


def potts(a: Any, b: Any, weight: ArrayLike = 1.0, *, name: str = "") -> Factor | list[Factor]:
    """weight * [a == b], element by element over arrays; one weight may serve all of them."""
    left, right = as_variables(a), as_variables(b)
    if len(left) != len(right):
        raise ModelError(f"potts: {len(left)} variables on the left and {len(right)} on the right")
    weights = [finite("potts: the weight", w) for w in _numbers("potts", weight).ravel().tolist()]
    if len(weights) not in (1, len(left)):
        raise ModelError(f"potts: {len(weights)} weights for {len(left)} pairs of variables")
    factors: list[Factor] = []
    for x, y, w in zip(left, right, np.broadcast_to(weights, len(left)).tolist(), strict=True):
        if x is y or x.states != y.states:
            raise ModelError(
                f"potts needs two variables with the same values: {x.name} is a {x.domain}, {y.name} a {y.domain}"
            )
        factors.append(Potts((x, y), w, name))
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
        joint = state if isinstance(state, tuple) else (state,)
        if len(joint) != len(scope):
            raise ModelError(f"{label}: state {state!r} has {len(joint)} entries for {len(scope)} variables")
        for j, (v, s) in enumerate(zip(scope, joint, strict=True)):
            positions[i, j] = v.state(s) - v.states[0]
    if len(np.unique(positions, axis=0)) < len(positions):
        raise ModelError(f"{label}: a state is listed twice, by its number and by its label")
    values = _numbers(label, list(entries.values()))
    _check_log_values(label, values)
    keep = values > -np.inf
    if math.prod(shape) <= MAX_DENSE_ENTRIES:
        dense = np.full(shape, -np.inf)
        dense[tuple(positions.T)] = values
        return Table(scope, dense, name)
    return SparseTable(scope, positions[keep], values[keep], name)


def _numbers(label: str, given: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{label}: expected numbers, got {given!r}") from None


def _check_log_values(label: str, values: NDArray[np.float64]) -> None:
    if np.isnan(values).any():
        raise ModelError(f"{label}: a log-value is NaN; allowed are finite numbers and -inf")
    if (values == np.inf).any():
        raise ModelError(f"{label}: a log-value is +inf; allowed are finite numbers and -inf")
    if (np.abs(values[values > -np.inf]) > LARGEST).any():
        raise ModelError(f"{label}: a log-value lies beyond ±{LARGEST:g}; to exclude a state use -inf")
    if not (values > -np.inf).any():
        raise ModelError(f"{label}: every log-value is -inf, so every point is excluded")


def _check_range(label: str, expression: LinearExpression, function: Univariate) -> None:
    if not isinstance(function, Univariate):
        raise ModelError(f"{label}: expected a function such as gaussian(0.0), got {function!r}")
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
