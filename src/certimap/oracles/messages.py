"""Multipliers by message passing: cuts with which the first master LP is already close to its final bound.

The terms of finite families (tables, Potts) and the column costs form a discrete graphical model. Writing u_f for the
multipliers of term f, every choice gives the bound

    sum over groups i of max_k (cost_i(k) + sum_f u_f,i(k))  +  sum over terms f of max_x (theta_f(x) - u_f.x),

and sequential tree-reweighted sweeps (TRW-S; for larger terms with single variables as separators) lower it without
ever raising it. The result is one global cut per term, its constant re-derived by the oracle: nothing here needs to be
exact. Other factors and the rows are ignored, which leaves the cuts valid and the decoded point perhaps infeasible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from certimap.graph.graph import FactorGraph
from certimap.model.domains import Integer
from certimap.oracles.cuts import Cuts, Floats, Ints
from certimap.oracles.diffusion import BARRED, DENSE, LISTED, POTTS, Layout, diffuse, lower_slack
from certimap.oracles.discrete import FiniteOracle, centred
from certimap.oracles.joint_tables import JointTables
from certimap.oracles.potts import PottsOracle
from certimap.oracles.protocol import Oracle
from certimap.oracles.tables import PairTables

_HARD = 1e3  # an excluded state looks this much worse to the sweeps than the widest range of finite values


@dataclass(frozen=True)
class Messages:
    """Cuts by batch index, the bound they give without rows (as computed), and the best decoded point."""

    cuts: list[tuple[int, Cuts]]
    bound: float
    point: Floats


def message_cuts(graph: FactorGraph, oracles: list[Oracle], sweeps: int = 100) -> Messages:
    """At most `sweeps` passes there and back over the graph's one-hot groups."""
    finite = [(b, o) for b, o in enumerate(oracles) if isinstance(o, FiniteOracle)]
    exact, excluded_below = _lay_out(graph, [o for _, o in finite])
    soft = exact._replace(unary=np.maximum(exact.unary, excluded_below), theta=np.maximum(exact.theta, excluded_below))
    messages = np.zeros(exact.message[-1])
    best = np.zeros(len(graph.groups), dtype=np.int64)
    bound = graph.offset + diffuse(soft, messages, sweeps, best)
    lower_slack(exact, messages)
    cuts = []
    done = 0
    for b, oracle in finite:
        m, w = oracle.scope.shape
        cuts.append((b, _as_cuts(oracle, messages[done : done + m * w].reshape(m, w), graph)))
        done += m * w
    return Messages(cuts, bound, _columns(graph, best))


def _as_cuts(oracle: FiniteOracle, u: Floats, graph: FactorGraph) -> Cuts:
    """One optimality cut per term; for a state that a term excludes altogether, the cut 0 <= -x_k."""
    m, w = oracle.scope.shape
    excluded = u <= -BARRED
    term, state = np.nonzero(excluded & (graph.upper[oracle.scope] > 0.5))
    exclusions = Cuts.of(term, -np.eye(w)[state], np.zeros(len(term)), feasibility=True)
    u = centred(np.where(excluded, 0.0, u), oracle.starts)
    return Cuts.join([Cuts.of(np.arange(m), u, oracle.conjugates(u)), exclusions], w)


def _lay_out(graph: FactorGraph, oracles: list[FiniteOracle]) -> tuple[Layout, float]:
    """The flat arrays, -inf included, and the value that stands in for -inf during the sweeps."""
    kinds, values, listings, strides, sizes, groups, arity = [], [], [], [], [], [], []
    theta: list[Floats] = [np.zeros(0)]
    states: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
    n_values = n_states = 0
    for oracle in oracles:
        m = len(oracle.batch)
        kind, table, listed = _entries(oracle)
        table = table.reshape(m, -1)
        per_term = listed.shape[1] * listed.shape[2]
        kinds.append(np.full(m, kind, dtype=np.int8))
        values.append(n_values + table.shape[1] * np.arange(m))
        listings.append(n_states + (per_term if len(listed) > 1 else 0) * np.arange(m))
        strides.append(np.tile([math.prod(oracle.sizes[d + 1 :]) for d in range(len(oracle.sizes))], m))
        sizes.append(np.tile(oracle.sizes, m))
        groups.append(graph.group_of[oracle.scope[:, oracle.starts[:-1]]].ravel())
        arity.append(np.full(m, len(oracle.sizes)))
        theta.append(table.ravel())
        states.append(listed.ravel())
        n_values, n_states = n_values + table.size, n_states + listed.size
    group = _joined(groups)
    first_slot = _starts(_joined(arity))
    term = np.repeat(np.arange(len(first_slot) - 1), np.diff(first_slot))
    columns = np.concatenate([*graph.groups, np.zeros(0, dtype=np.int64)])
    unary = np.where(graph.upper[columns] > 0.5, graph.cost[columns], -np.inf)
    layout = Layout(
        kind=np.concatenate([*kinds, np.zeros(0, dtype=np.int8)]),
        values=np.append(_joined(values), n_values),
        listing=_joined(listings),
        first_slot=first_slot,
        message=_starts(_joined(sizes)),
        term=term,
        group=group,
        stride=_joined(strides),
        is_last=group == np.maximum.reduceat(group, first_slot[:-1])[term],
        is_first=group == np.minimum.reduceat(group, first_slot[:-1])[term],
        group_start=_starts(np.array([len(g) for g in graph.groups], dtype=np.int64)),
        first_of_group=_starts(np.bincount(group, minlength=len(graph.groups))),
        slots=np.argsort(group, kind="stable"),
        unary=unary,
        theta=np.concatenate(theta),
        states=np.concatenate(states),
    )
    known = np.concatenate([layout.theta, unary])
    known = known[np.isfinite(known)]
    return layout, -_HARD * (1.0 + 2.0 * float(np.abs(known).max(initial=0.0)))


def _entries(oracle: FiniteOracle) -> tuple[int, Floats, NDArray[np.int32]]:
    unlisted = np.zeros((1, 0, 0), dtype=np.int32)
    match oracle:
        case PottsOracle(weight=weight):
            return POTTS, weight, unlisted
        case JointTables(theta=theta) if oracle.batch.kind == "sparse_table":
            return LISTED, theta, oracle.listed
        case PairTables(theta=theta) | JointTables(theta=theta):
            return DENSE, theta, unlisted
    raise TypeError(f"message passing does not know {type(oracle).__name__}")


def _joined(parts: list[NDArray[np.int64]]) -> Ints:
    return np.concatenate([*parts, np.zeros(0, dtype=np.int64)])


def _starts(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _columns(graph: FactorGraph, states: Ints) -> Floats:
    """One-hot groups at the decoded states, coded integers to match, everything else at its lower bound."""
    y = np.array(graph.lower)
    for group, state in zip(graph.groups, states.tolist(), strict=True):
        y[group] = 0.0
        y[group[state]] = 1.0
        atom = graph.atoms[group[state]]
        if atom is not None and isinstance(atom.variable.domain, Integer):
            numeric = graph.column_of.get(atom.variable.numeric())
            if numeric is not None and numeric not in group:
                y[numeric] = float(atom.key or 0)
    return y
