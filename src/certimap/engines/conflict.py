"""Why a model is infeasible: an irreducible set of constraints and excluding factors that cannot hold together."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from certimap.engines.branch_and_cut import BranchAndCut
from certimap.engines.elimination import Elimination
from certimap.engines.ledger import Ledger, Limits
from certimap.graph.compile import compile_model
from certimap.model.expressions import Constraint, LinearExpression
from certimap.model.factors import Factor, Parity, SparseTable, Table
from certimap.model.model import Model
from certimap.oracles.protocol import oracles_for

Part = tuple[str, Constraint | Factor]
T = TypeVar("T")

NODES_PER_CHECK = 20_000
NODES_BEFORE_ELIMINATION = 30


def irreducible_conflict(model: Model, ledger: Ledger) -> tuple[str, ...]:
    """Names of parts that are infeasible together, while dropping any one of them leaves a feasible rest.

    A check that a limit of its own or of the solve (`ledger`) stops counts as feasible, so that the set found is
    infeasible in any case.
    """
    factors = zip(model.factor_names(), model.factors, strict=True)
    parts: list[Part] = [*model.constraints.items(), *((name, f) for name, f in factors if _excludes(f))]
    return tuple(name for name, _ in minimal_subset(parts, lambda chosen: _infeasible(model, chosen, ledger)))


def minimal_subset(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A minimal failing subset of a failing list, by divide and conquer (few checks when the subset is small)."""

    def search(background: list[T], fresh: bool, candidates: Sequence[T]) -> list[T]:
        if fresh and fails(background):
            return []
        if len(candidates) == 1:
            return list(candidates)
        half = len(candidates) // 2
        first, second = candidates[:half], candidates[half:]
        needed_second = search([*background, *first], True, second)
        needed_first = search([*background, *needed_second], bool(needed_second), first)
        return [*needed_first, *needed_second]

    return search([], True, parts) if parts else []


def _excludes(factor: Factor) -> bool:
    match factor:
        case Table(log_values=values):
            return bool((values == -np.inf).any())
        case SparseTable() | Parity():
            return True
    return False


def _infeasible(model: Model, parts: Sequence[Part], parent: Ledger) -> bool:
    """Whether the chosen parts alone, without any objective, are proved infeasible."""
    reduced = copy.copy(model)
    reduced.linear = LinearExpression({})
    reduced.softs, reduced.blocks = [], []
    reduced.constraints = {name: part for name, part in parts if isinstance(part, Constraint)}
    reduced.factors = [_indicator(part) for _, part in parts if isinstance(part, Factor)]
    if parent.urgent_reason() is not None:
        return False
    graph = compile_model(reduced)
    ledger = Ledger(Limits(max_nodes=NODES_PER_CHECK), parent=parent)
    tree = BranchAndCut(graph, oracles_for(graph), ledger, seed=0, n_jobs=1)
    if tree.run(node_budget=NODES_BEFORE_ELIMINATION) is None:
        elimination = Elimination.of(graph, ledger)
        if elimination is None or elimination.run() is None:
            tree.run()
    return ledger.upper_bound == -np.inf


def _indicator(factor: Factor) -> Factor:
    """The factor's exclusions without its values."""
    match factor:
        case Table(log_values=values):
            return Table(factor.scope, np.where(np.isfinite(values), 0.0, -np.inf))
        case SparseTable(log_values=values):
            return SparseTable(factor.scope, factor.positions, np.zeros_like(values))
        case Parity():
            return replace(factor)
    raise TypeError(factor.kind)
