"""From a finished tree to a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate, LeafRecord
from certimap.engines.branch_and_cut import BranchAndCut, Node
from certimap.engines.ledger import Ledger
from certimap.graph.graph import FactorGraph
from certimap.results import classify


def tree_certificate(engine: BranchAndCut, conflict: tuple[str, ...] = ()) -> Certificate | None:
    """The proof of the engine's bound; None if some leaf never got multipliers (stopped before the first LP)."""
    graph, ledger, pool = engine.graph, engine.ledger, engine.master.pool
    leaves = engine.tree.leaves()
    if any(leaf.multipliers is None and leaf.bound > -np.inf for leaf in leaves):
        return None
    used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(_cuts_of(leaf) for leaf in leaves)]))
    position = np.full(len(pool), -1, dtype=np.int64)
    position[used] = np.arange(len(used))
    return certify(
        graph,
        ledger,
        algorithm="branch-and-cut",
        conflict=conflict,
        blocks=graph.blocks,
        private=graph.private,
        cuts=tuple(pool.record(int(k)) for k in used),
        nodes=tuple(engine.tree.records),
        leaves=tuple(_leaf(leaf, position) for leaf in leaves),
    )


def certify(graph: FactorGraph, ledger: Ledger, *, algorithm: str, **proof: Any) -> Certificate:
    """The claims that every certificate states, whatever proves them, with the proof."""
    return Certificate(
        algorithm=algorithm,
        model=graph.model.fingerprint(),
        log_map=ledger.log_map,
        upper_bound=ledger.upper_bound,
        tolerance=ledger.limits.gap,
        status=classify(ledger.log_map, ledger.upper_bound, ledger.limits.gap).name,
        assignment=ledger.assignment,
        **proof,
    )


def _cuts_of(leaf: Node) -> NDArray[np.int64]:
    return leaf.multipliers.cuts if leaf.multipliers is not None else np.zeros(0, dtype=np.int64)


def _leaf(leaf: Node, position: NDArray[np.int64]) -> LeafRecord:
    m = leaf.multipliers
    if m is None:
        none, zero = np.zeros(0, dtype=np.int64), np.zeros(0)
        return LeafRecord(leaf.index, True, none, zero, none, zero)
    return LeafRecord(leaf.index, leaf.bound == -np.inf, position[m.cuts], m.weights, m.rows, m.row_weights)
