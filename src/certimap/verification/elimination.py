"""The proof by elimination: maximise the model's tables over one variable after the other, raised by rounding errors.

The certificate gives the order only. Any order is valid, since max over x of f(x) + g = (max over x of f(x)) + g where
g does not contain x; a bad one merely makes the tables large.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate, CertificateError
from certimap.graph.tables import as_tables
from certimap.model.model import Model
from certimap.verification.intervals import margin, up
from certimap.verification.proof import Proof

Floats = NDArray[np.float64]

MOST_ENTRIES = 2**26  # of one joined table
MOST_AXES = 64


def check_elimination(certificate: Certificate, model: Model) -> Proof:
    """The maximum of the model's tables, not below the exact one."""
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
        joined = np.zeros(sizes)
        for near, values in touched:
            joined += _spread(near, values, scope)
        rest = tuple(i for i in scope if i != variable)
        error = margin(len(touched) + 1, math.fsum(_largest(values) for _, values in touched))
        values = joined.max(axis=scope.index(variable)) + error
        if rest:
            pending.append((rest, values))
        else:
            total = up(total + float(values)) if total > -math.inf and float(values) > -math.inf else -math.inf
    return Proof(total, nodes=1, leaves=1, cuts=0)


def _spread(near: tuple[int, ...], values: Floats, scope: list[int]) -> Floats:
    """The table with its axes in the order of the scope, and axes of length one for the other variables."""
    inside = sorted(near)
    ordered = np.moveaxis(values, [near.index(i) for i in inside], range(len(inside)))
    return np.expand_dims(ordered, tuple(k for k, i in enumerate(scope) if i not in near))


def _largest(values: Floats) -> float:
    return float(np.abs(values, where=values > -np.inf, out=np.zeros(values.shape)).max(initial=0.0))
