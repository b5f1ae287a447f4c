"""Multi-cut Benders decomposition inside a best-first tree (algorithm "branch-and-cut").

Each node solves the relaxed master on its box, adds the constraints that the oracles find violated, offers rounded
points, and is closed by its bound or split. Every bound comes from `bounds.leaf_bound`; the tree with the leaves'
multipliers is the certificate.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import NodeRecord
from certimap.engines.bounds import Multipliers, row_slack
from certimap.engines.branching import Split, choose_split
from certimap.engines.cut_master import CutMaster, Relaxation
from certimap.engines.heuristics import Heuristics
from certimap.engines.ledger import Ledger
from certimap.engines.propagation import Propagator
from certimap.graph.graph import FactorGraph
from certimap.oracles.messages import message_cuts
from certimap.oracles.protocol import Box, Oracle
from certimap.results import StopReason

Floats = NDArray[np.float64]

VIOLATION = 1e-7  # a cut must be violated by this much, relative to the objective's scale
ROOT_ROUNDS = 200
NODE_ROUNDS = 12
LEAST_SECONDS = 1.0  # of one linear program, however little time is left: a bound is always wanted
ROOT_STALL, NODE_STALL = 1e-3, 1e-2  # a round that closes less of the gap than this ends the cut loop
RECORD_EVERY = 50  # nodes between log lines without news


@dataclass
class Node:
    """An open box: its bound with the multipliers that prove it, and what the certificate needs to rebuild it."""

    index: int
    depth: int
    box: Box
    bound: float
    multipliers: Multipliers | None
    last_column: int | None = None

    def improve(self, relaxation: Relaxation) -> None:
        if relaxation.bound < self.bound:
            self.bound, self.multipliers = relaxation.bound, relaxation.multipliers


class Tree:
    """Open nodes in best-first order, closed leaves, and the record of every split and tightening."""

    def __init__(self, root: Box) -> None:
        self.records = [NodeRecord(-1, -1, 0.0, 0.0)]
        self.closed: list[Node] = []
        self._closed_bound = -math.inf
        self._heap: list[tuple[float, int, Node]] = []
        self.push(Node(0, 0, root, math.inf, None))

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def untouched(self) -> bool:
        """Whether the root still waits to be processed."""
        return len(self.records) == 1 and not self.closed

    def push(self, node: Node) -> None:
        heapq.heappush(self._heap, (-node.bound, node.index, node))

    def pop(self) -> Node:
        return heapq.heappop(self._heap)[2]

    def close(self, node: Node) -> None:
        self.closed.append(node)
        self._closed_bound = max(self._closed_bound, node.bound)

    def split(self, node: Node, split: Split) -> None:
        for low, high in (split.down, split.up):
            lower, upper = node.box.lower.copy(), node.box.upper.copy()
            lower[split.column], upper[split.column] = low, high
            self.records.append(NodeRecord(node.index, split.column, low, high))
            child = Box(lower, upper)
            self.push(Node(len(self.records) - 1, node.depth + 1, child, node.bound, node.multipliers, split.column))

    def bound(self) -> float:
        """The largest bound of any leaf, open or closed."""
        return max(self._closed_bound, -self._heap[0][0] if self._heap else -math.inf)

    def leaves(self) -> list[Node]:
        return [*self.closed, *(node for _, _, node in sorted(self._heap, key=lambda entry: entry[1]))]


class Proposer(Protocol):
    """Offers points to the ledger; returns whether the incumbent improved."""

    def at_root(self, y: Floats | None) -> bool: ...

    def after_root(self, y: Floats) -> bool: ...

    def at_node(self, y: Floats) -> bool: ...


class BranchAndCut:
    """One solve of one graph; `run` returns why it stopped."""

    def __init__(
        self,
        graph: FactorGraph,
        oracles: list[Oracle],
        ledger: Ledger,
        *,
        seed: int = 0,
        n_jobs: int = 1,
        proposer: Proposer | None = None,
    ) -> None:
        self.graph = graph
        self.ledger = ledger
        self.master = CutMaster(graph, oracles)
        self.heuristics = proposer or Heuristics(self.master, ledger, seed, n_jobs)
        self.propagator = Propagator(graph)
        self.tree = Tree(self.master.box)

    def process_root(self) -> None:
        """Everything up to the first split; always far enough for a finite bound, whatever the limits."""
        messages = message_cuts(self.graph, self.master.oracles)
        for batch, cuts in messages.cuts:
            self.master.add(self.master.oracles[batch], cuts)
        if self.heuristics.at_root(messages.point if messages.cuts else None):
            self.record("H")
        self.process(self.tree.pop())

    def run(self, node_budget: float = math.inf) -> StopReason | None:
        """Work on the node of the largest bound until the ledger says stop or no node is open.

        None when the budget of nodes is used up before: the next call goes on.
        """
        if self.tree.untouched:
            self.process_root()
        spent = 0
        while len(self.tree) and spent < node_budget:
            self.ledger.prove(self.tree.bound())
            reason = self.ledger.stop_reason()
            if reason is not None:
                return reason
            self.process(self.tree.pop())
            spent += 1
        self.ledger.prove(self.tree.bound())
        if len(self.tree):
            return self.ledger.stop_reason()
        proved = self.ledger.upper_bound in (self.ledger.log_map, -math.inf)
        return self.ledger.stop_reason() or (StopReason.EXHAUSTED if proved else StopReason.STALLED)

    def process(self, node: Node) -> None:
        """Tighten, relax, search, then close or split."""
        self.ledger.nodes += 1
        if node.bound <= self.ledger.cutoff or not self.tighten(node):
            self.tree.close(node)
            return
        relaxation = self.relax(node)
        if self.ledger.urgent_reason() is not None:
            self.tree.push(node)
            return
        incumbent = self.ledger.log_map
        if node.bound > self.ledger.cutoff:
            y = relaxation.y if relaxation.y is not None else 0.5 * (node.box.lower + node.box.upper)
            (self.heuristics.at_node if node.depth else self.heuristics.after_root)(y)
        if self.ledger.log_map > incumbent:
            self.record("H", pending=node.bound)
        split = self.split_of(node, relaxation)
        if split is None:
            if node.bound > self.ledger.cutoff:
                node.improve(self.master.without_cuts())
            self.tree.close(node)
        else:
            self.tree.split(node, split)
        if self.ledger.nodes % RECORD_EVERY == 0 or node.depth == 0:
            self.record("B" if node.depth else "C")

    def tighten(self, node: Node) -> bool:
        """Propagate rows; False if the box is proved empty."""
        node.box, steps, alive = self.propagator.tighten(node.box, node.last_column)
        record = self.tree.records[node.index]
        self.tree.records[node.index] = NodeRecord(record.parent, record.column, record.lower, record.upper, steps)
        if not alive:
            node.bound, node.multipliers = -math.inf, None
        return alive

    def relax(self, node: Node) -> Relaxation:
        """Master solve and separation until the node is closed, no cut is violated, or progress fades."""
        master, ledger = self.master, self.ledger
        master.move_to(node.box)
        previous = math.inf
        relaxation = Relaxation(math.inf, None, None, None)
        most, stall = (NODE_ROUNDS, NODE_STALL) if node.depth else (ROOT_ROUNDS, ROOT_STALL)
        for rounds in range(most):
            left = ledger.seconds_left
            relaxation = master.solve(None if left is None else max(left, LEAST_SECONDS))
            ledger.iterations += 1
            node.improve(relaxation)
            if relaxation.y is None or relaxation.t is None or node.bound <= ledger.cutoff:
                break
            if not node.depth:
                ledger.prove(node.bound)
                self.record("C", pending=node.bound)
            if ledger.urgent_reason() is not None:
                break
            if not master.separate(relaxation.y, relaxation.t, VIOLATION * max(1.0, abs(node.bound)) / 10.0):
                break
            reach = node.bound - ledger.log_map if ledger.assignment is not None else abs(node.bound)
            if rounds >= 3 and previous - node.bound < stall * reach:
                break
            previous = node.bound
        if node.bound == math.inf or (relaxation.y is None and node.bound > ledger.cutoff):
            node.improve(master.without_cuts())
        master.purge()
        return relaxation

    def split_of(self, node: Node, relaxation: Relaxation) -> Split | None:
        """How to go on below the node; None if it is closed or nothing is left to split.

        What the tolerance of rows adds to a bound stays whatever is split.
        """
        if node.bound - row_slack(self.graph, node.multipliers) <= self.ledger.cutoff:
            return None
        y, t = relaxation.y, relaxation.t
        if y is None or t is None:  # the LP gave no point: split in the middle of the box
            y, t = 0.5 * (node.box.lower + node.box.upper), np.zeros(len(self.graph.blocks))
        return choose_split(self.master, y, t, node.bound, node.depth)

    def record(self, source: str, pending: float = -math.inf) -> None:
        """A log line; `pending` is the bound of the node in hand, which is neither open nor closed."""
        self.ledger.prove(max(self.tree.bound(), pending))
        self.ledger.record(source, open_nodes=len(self.tree) + (pending > -math.inf), cuts=len(self.master.pool))
