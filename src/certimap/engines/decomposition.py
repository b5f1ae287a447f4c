"""Choosing the blocks: single factors first, cyclic windows where the gap does not close.

Blocks matter more than anything else: the bound of a decomposition is the concave envelope block by block. Trees of
factors add nothing, cycles do. Coarse blocks make every node dearer, so they come in when a short tree has not closed.
"""

from __future__ import annotations

from certimap.engines.branch_and_cut import BranchAndCut
from certimap.engines.ledger import Ledger
from certimap.graph.windows import coarsen
from certimap.oracles.protocol import oracles_for
from certimap.results import StopReason

LEVELS = (1, 2)  # short cycles, then larger windows
TRIAL_NODES = 30  # a tree that needs no more than this is done before coarser blocks would pay


def run_with_best_blocks(
    engine: BranchAndCut, ledger: Ledger, *, seed: int, n_jobs: int
) -> tuple[BranchAndCut, StopReason]:
    """Go on with the engine's tree, or with a coarser decomposition whose root bound beats the tree so far."""
    graph = engine.graph
    for level in LEVELS:
        reason = engine.run(node_budget=TRIAL_NODES)
        if reason is not None:
            return engine, reason
        coarse = coarsen(graph, level=level)
        if coarse is None:
            break
        trial = BranchAndCut(coarse, oracles_for(coarse), ledger, seed=seed, n_jobs=n_jobs)
        trial.process_root()
        if trial.tree.bound() >= engine.tree.bound():
            break
        engine = trial
    reason = engine.run()
    assert reason is not None
    return engine, reason
