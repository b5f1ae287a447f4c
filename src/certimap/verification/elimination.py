"""The proof by elimination: maximise the model's tables over one variable after the other, raised by rounding errors.

The certificate gives the order only. Any order is valid, since max over x of f(x) + g = (max over x of f(x)) + g where
g does not contain x; a bad one merely makes the tables large.

Rounded addition is monotone, so the result is the largest of the values that the joint states get when each is summed
with rounding, in one order for all. The error at an optimal state x is at most gamma times sum_k |table_k(x)|, which is

    2 sum_k max(0, table_k(x)) - sum_k table_k(x)  <=  2 sum_k max(0, max table_k) + constant - value

for the value of any feasible point. Large negative entries, which optimal states avoid, do not matter.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate, CertificateError
from certimap.graph.tables import TableModel, as_tables
from certimap.model.model import Model
from certimap.verification.intervals import margin, up
from certimap.verification.proof import Proof

Floats = NDArray[np.float64]
Part = tuple[tuple[int, ...], Floats]

MOST_ENTRIES = 2**26  # of one joined table
MOST_AXES = 64


def check_elimination(certificate: Certificate, model: Model) -> Proof:
    """The maximum of the model's tables, not below the exact one; the certificate's point has been checked before."""
    tables = as_tables(model)
    if tables is None:
        raise CertificateError("a proof by elimination needs a model of tables, and this one has other parts")
    position = {v.name: i for i, v in enumerate(tables.variables)}
    order = certificate.details.get("order")
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(position):
        raise CertificateError("the order of elimination does not list every variable once")
    total = tables.constant
    pending = [(t.scope, t.log_values) for t in tables.terms]
    for name in order:
        variable = position[name]
        touched = [part for part in pending if variable in part[0]]
        pending = [part for part in pending if variable not in part[0]]
        scope = sorted({i for near, _ in touched for i in near} | {variable})
        sizes = [tables.sizes[i] for i in scope]
        if math.prod(sizes) > MOST_ENTRIES or len(scope) > MOST_AXES:
            raise CertificateError(f"eliminating {name!r} needs a table of {math.prod(sizes)} entries")
        rest = tuple(i for i in scope if i != variable)
        values = _maximum(touched, scope, variable, tables.sizes)
        if rest:
            pending.append((rest, values))
        else:
            total += float(values)
    if total > -math.inf:
        total = up(total + margin(len(tables.terms) + 2 * len(order) + 2, _magnitude(tables, certificate.log_map)))
    return Proof(total, nodes=1, leaves=1, cuts=0)


def _magnitude(tables: TableModel, value: float) -> float:
    """Not below the sum of |entry| and |constant| at an optimal state; `value` is that of some feasible point."""
    largest = math.fsum(_largest(t.log_values) for t in tables.terms)
    highest = math.fsum(max(0.0, float(t.log_values.max())) for t in tables.terms)
    return abs(tables.constant) + min(largest, 2.0 * highest + abs(tables.constant) + abs(value))


def _maximum(touched: list[Part], scope: list[int], variable: int, sizes: tuple[int, ...]) -> Floats:
    """The maximum over one variable of a sum of tables: those of few entries are added up first, the last by state."""
    touched = sorted(touched, key=lambda part: part[1].size) or [((variable,), np.zeros(sizes[variable]))]
    near, total = touched[0]
    for other, values in touched[1:-1]:
        both = sorted({*near, *other})
        near, total = tuple(both), _spread(near, total, both) + _spread(other, values, both)
    parts = [_spread(near, total, scope)]
    if len(touched) > 1:
        parts.append(_spread(*touched[-1], scope))
    axis = scope.index(variable)
    best = np.full([sizes[i] for i in scope if i != variable], -np.inf)
    for state in range(sizes[variable]):
        np.maximum(best, sum(part.take(state, axis) for part in parts), out=best)
    return best


def _spread(near: tuple[int, ...], values: Floats, scope: list[int]) -> Floats:
    """The table with its axes in the order of the scope, and axes of length one for the other variables."""
    inside = sorted(near)
    ordered = np.moveaxis(values, [near.index(i) for i in inside], range(len(inside)))
    return np.expand_dims(ordered, tuple(k for k, i in enumerate(scope) if i not in near))


def _largest(values: Floats) -> float:
    return float(np.abs(values, where=values > -np.inf, out=np.zeros(values.shape)).max(initial=0.0))
