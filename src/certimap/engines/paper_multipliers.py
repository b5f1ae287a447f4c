"""Multipliers of the constraints  x = clone  at a point, one per block, for the paper's loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import approx_fprime, linprog, minimize

from certimap._numeric.rounding import gamma
from certimap.graph.blocks import dense_values
from certimap.graph.graph import FactorGraph
from certimap.model.domains import Integer
from certimap.model.expressions import Variable
from certimap.model.factors import Factor
from certimap.oracles.protocol import Box, Oracle

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Multiplier:
    """theta_block(x) <= u.x + h (or 0 <= u.x + h) on the whole domain."""

    block: int
    columns: NDArray[np.int64]
    u: Floats
    h: float
    feasibility: bool
    witness: Floats | None = None


def multipliers_at(oracle: Oracle, y: Floats) -> list[Multiplier]:
    """The best multiplier of every term of the batch at the point; a term without any point excludes everything."""
    kind = oracle.batch.kind
    root = Box(oracle.graph.lower, oracle.graph.upper)
    nowhere = np.flatnonzero(oracle.upper(root) == -np.inf)
    if len(nowhere):
        blocks, width = oracle.batch.blocks[nowhere].tolist(), oracle.scope.shape[1]
        return [
            Multiplier(b, oracle.scope[i], np.zeros(width), -1.0, True) for b, i in zip(blocks, nowhere, strict=True)
        ]
    if kind in ("table", "potts") and any(_is_coded_integer(v) for v in _variables(oracle.batch.factors)):
        return [_value_coded(oracle, i, y) for i in range(len(oracle.batch))]
    if kind == "black_box":
        return [_local(oracle, i, y) for i in range(len(oracle.batch))]
    cuts = oracle.separate(y, np.full(len(oracle.batch), np.inf), root, 0.0)
    witnesses = cuts.witness if cuts.witness is not None else [None] * len(cuts)
    return [
        Multiplier(int(oracle.batch.blocks[i]), oracle.scope[i], u, float(h), bool(feasibility), w)
        for i, u, h, feasibility, w in zip(cuts.term, cuts.u, cuts.h, cuts.feasibility, witnesses, strict=True)
    ]


def _variables(factors: tuple[Factor, ...]) -> set[Variable]:
    return {v for f in factors for v in f.variables()}


def _is_coded_integer(v: Variable) -> bool:
    return isinstance(v.domain, Integer) and len(v.states) > 2


def _value_coded(oracle: Oracle, i: int, y: Floats) -> Multiplier:
    """A table's multiplier when an integer is one number: u is linear in its value, so the envelope may not be tight.

    min over u, h of u.x + h subject to u.v + h >= theta(v) for every state v with a finite value.
    """
    factor = oracle.batch.factors[i]
    columns = oracle.scope[i]
    values = dense_values(factor)
    states = np.argwhere(np.isfinite(values))
    basis = _basis(oracle.graph, factor)
    start = np.cumsum([0, *values.shape])[:-1]
    one_hot = np.zeros((len(states), len(columns)))
    np.put_along_axis(one_hot, states + start, 1.0, axis=1)
    coded = one_hot @ basis
    theta = values[tuple(states.T)]
    found = linprog(
        np.append(y[columns] @ basis, 1.0),
        A_ub=-np.hstack([coded, np.ones((len(states), 1))]),
        b_ub=-theta,
        bounds=[(-1e6, 1e6)] * basis.shape[1] + [(None, None)],
    )
    u = basis @ found.x[:-1] if found.x is not None else np.zeros(len(columns))
    linear = one_hot @ u
    size = float(np.abs(theta).max() + np.abs(u).sum())
    h = float((theta - linear).max()) + 2.0 * gamma(len(values.shape) + 2) * size
    return Multiplier(int(oracle.batch.blocks[i]), columns, u, h, False)


def _basis(graph: FactorGraph, factor: Factor) -> Floats:
    """Columns of one-hot multipliers that the paper's coding can express: the value of an integer, else each state."""
    parts = [
        np.array(v.states, dtype=float)[:, None] if _is_coded_integer(v) else np.eye(len(v.states))
        for v in factor.variables()
    ]
    rows, columns = sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)
    basis, r, c = np.zeros((rows, columns)), 0, 0
    for p in parts:
        basis[r : r + p.shape[0], c : c + p.shape[1]] = p
        r, c = r + p.shape[0], c + p.shape[1]
    return basis


def _local(oracle: Oracle, i: int, y: Floats) -> Multiplier:
    """Gradient multiplier and a local maximum from the point: what a local solver returns. Not a certified constant."""
    factor, columns = oracle.batch.factors[i], oracle.scope[i]
    start = y[columns]
    u = approx_fprime(start, factor.value, 1e-7)
    bounds = list(zip(oracle.graph.lower[columns], oracle.graph.upper[columns], strict=True))

    def objective(x: Floats) -> float:
        return float(u @ x) - factor.value(x)

    found = minimize(objective, start, method="L-BFGS-B", bounds=bounds)
    return Multiplier(int(oracle.batch.blocks[i]), columns, u, -float(found.fun), False)
