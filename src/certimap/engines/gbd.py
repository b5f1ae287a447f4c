"""The paper's generalised Benders decomposition, as written (algorithm "gbd"): for study and for its tables.

Every factor gets clones of its variables. Step 1 evaluates the factors at a point x and takes multipliers u of the
constraints  x = clone;  step 2 maximises  x0 + singletons  subject to  x0 <= sum_f (u_f.x + h_f(u_f))  for all
multipliers so far; step 3 goes on from that point. One aggregated constraint is added per iteration, an integer is its
numeric value, and nothing is branched on outside the master. So the loop can return to one point for ever with a gap;
it then stops as stalled.

The constants h come from certified conjugates and the bound is valid, except for black-box factors: their inner problem
is solved by local search as the paper's solver did, and the bound is then reported as local only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from certimap.certificate import Certificate, CutRecord, LeafRecord
from certimap.engines.branch_and_cut import BranchAndCut
from certimap.engines.ledger import Ledger, Limits
from certimap.engines.paper_multipliers import Multiplier, multipliers_at
from certimap.engines.proof import certify
from certimap.graph.graph import FactorBatch, FactorGraph
from certimap.oracles.protocol import Box, Cuts, Oracle
from certimap.results import StopReason, relative_gap

Floats = NDArray[np.float64]

MASTER_GAP = 1e-9


@dataclass(frozen=True)
class Constraint:
    """One constraint of the relaxed master: x0 <= u.y + h, or 0 <= u.y + h; `parts` are its terms per block."""

    u: Floats
    h: float
    feasibility: bool
    parts: tuple[Multiplier, ...]


class StoredConstraints(Oracle):
    """The sum of all factors, known through the constraints added so far."""

    box_bounds = False  # sums of several blocks

    def __init__(self, graph: FactorGraph, constraints: list[Constraint]) -> None:
        scope = np.arange(graph.n_columns)[None, :]
        batch = FactorBatch("stored", scope, (), {}, np.zeros(1, dtype=np.int64))
        super().__init__(batch, graph)
        self._constraints = constraints
        self.handed_out: list[int] = []  # which constraint each pool cut is, in pool order

    def value(self, y: Floats) -> Floats:
        return np.array([min(c.u @ y + c.h for c in self._constraints if not c.feasibility)])

    def upper(self, box: Box) -> Floats:
        ends = [
            np.maximum(c.u * box.lower, c.u * box.upper).sum() + c.h for c in self._constraints if not c.feasibility
        ]
        return np.array([min(ends)])

    def conjugate(self, i: int, u: Floats, box: Box) -> tuple[float, Floats]:
        shifted = [(c.u - u, c.h) for c in self._constraints if not c.feasibility]
        bound, slope = min((np.maximum(s * box.lower, s * box.upper).sum() + h, k) for k, (s, h) in enumerate(shifted))
        return float(bound), np.where(shifted[slope][0] > 0, box.upper, box.lower)

    def proposals(self, box: Box) -> Cuts:
        return self._hand_out(range(len(self._constraints)))

    def separate(self, y: Floats, t: Floats, box: Box, tolerance: float) -> Cuts:
        """Every constraint is in the master from the start."""
        return Cuts.none(self.scope.shape[1])

    def _hand_out(self, chosen: range) -> Cuts:
        self.handed_out.extend(chosen)
        picked = [self._constraints[j] for j in chosen]
        feasibility = np.array([c.feasibility for c in picked])
        cuts = Cuts.of(
            np.zeros(len(picked), dtype=np.int64), np.array([c.u for c in picked]), np.array([c.h for c in picked])
        )
        return replace(cuts, feasibility=feasibility)


class RelaxedPoints:
    """Proposes master points: the rounded LP point, valued by the relaxed objective."""

    def __init__(self, oracle: StoredConstraints, ledger: Ledger) -> None:
        self._oracle = oracle
        self._ledger = ledger

    def at_root(self, y: Floats | None) -> bool:
        return y is not None and self.at_node(y)

    def after_root(self, y: Floats) -> bool:
        return self.at_node(y)

    def at_node(self, y: Floats) -> bool:
        graph = self._oracle.graph
        assignment = graph.decode(y)
        if graph.model.violated(assignment):
            return False
        point = graph.encode(assignment)
        feasible = all(c.u @ point + c.h >= -1e-9 for c in self._oracle._constraints if c.feasibility)
        value = graph.offset + float(graph.cost @ point) + float(self._oracle.value(point)[0])
        return feasible and self._ledger.offer(assignment, value)


class GeneralisedBenders:
    """The paper's loop on one graph; `run` returns why it stopped."""

    def __init__(self, graph: FactorGraph, oracles: list[Oracle], ledger: Ledger) -> None:
        self.graph = graph
        self.oracles = oracles
        self.ledger = ledger
        self.certified = all(b.kind != "black_box" for b in graph.batches)
        self.local_bound = math.inf
        self.constraints: list[Constraint] = []
        self._visited: set[bytes] = set()
        self._proof: tuple[BranchAndCut, StoredConstraints] | None = None  # the master with the best bound so far

    def run(self) -> StopReason:
        self.add_constraint(self.first_point())
        while True:  # once in any case, so that there is a bound
            point = self.solve_master()
            if point is None:
                return self.ledger.stop_reason() or StopReason.EXHAUSTED
            self.ledger.record("C", open_nodes=0, cuts=len(self.constraints))
            if self.local_gap() <= self.ledger.limits.gap or point.tobytes() in self._visited:
                return self.ledger.stop_reason() or StopReason.STALLED
            self.add_constraint(point)
            if (reason := self.ledger.stop_reason()) is not None:
                return reason

    def first_point(self) -> Floats:
        """Step 1 starts from a feasible point; the middle of the box will do where none is known."""
        graph = self.graph
        return graph.rounded(0.5 * (graph.lower + graph.upper))

    def solve_master(self) -> Floats | None:
        """Step 2: the relaxed master, solved to optimality over the variables' domains; None if it has no point."""
        inner = Ledger(Limits(gap=MASTER_GAP, max_nodes=self._nodes_left()), parent=self.ledger)
        stored = StoredConstraints(self.graph, self.constraints)
        aggregated = replace(self.graph, blocks=((),), private=((),), batches=(stored.batch,))
        master = BranchAndCut(aggregated, [stored], inner, proposer=RelaxedPoints(stored, inner))
        master.run()
        self.ledger.iterations += 1
        self.ledger.nodes += inner.nodes
        if inner.upper_bound < self.local_bound:
            self.local_bound = inner.upper_bound
            self._proof = master, stored
        if self.certified:
            self.ledger.prove(inner.upper_bound)
        return None if inner.assignment is None else self.graph.encode(inner.assignment)

    def add_constraint(self, point: Floats) -> None:
        """Steps 1 and 3: value and multipliers of the factors at the point."""
        self._visited.add(point.tobytes())
        assignment = self.graph.decode(point)
        self.ledger.offer(assignment, self.graph.model.value(assignment))
        parts = [part for oracle in self.oracles for part in multipliers_at(oracle, point)]
        for part in (p for p in parts if p.feasibility):
            self.constraints.append(self._sum((part,), feasibility=True))
        optimality = tuple(p for p in parts if not p.feasibility)
        if len(optimality) == len(self.graph.blocks):
            self.constraints.append(self._sum(optimality, feasibility=False))
        elif not any(not c.feasibility for c in self.constraints):
            constant = tuple(p for oracle in self.oracles for p in _constant_parts(oracle))
            self.constraints.append(self._sum(constant, feasibility=False))

    def local_gap(self) -> float:
        return relative_gap(self.ledger.log_map, self.local_bound)

    def certificate(self, conflict: tuple[str, ...] = ()) -> Certificate | None:
        """The best master's tree proves its bound: each aggregated constraint is a sum of one cut per block."""
        if not self.certified or self._proof is None:
            return None
        master, stored = self._proof
        first = np.cumsum([0, *(len(c.parts) for c in self.constraints)])
        leaves = []
        for leaf in master.tree.leaves():
            m = leaf.multipliers
            if m is None and leaf.bound > -math.inf:
                return None
            used = [stored.handed_out[k] for k in m.cuts] if m is not None else []
            cuts = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(first[j], first[j + 1]) for j in used)])
            weights = (
                np.repeat(m.weights, [len(self.constraints[j].parts) for j in used]) if m is not None else np.zeros(0)
            )
            rows = (m.rows, m.row_weights) if m is not None else (np.zeros(0, dtype=np.int64), np.zeros(0))
            leaves.append(LeafRecord(leaf.index, leaf.bound == -math.inf, cuts, weights, *rows))
        return certify(
            self.graph,
            self.ledger,
            algorithm="gbd",
            conflict=conflict,
            blocks=self.graph.blocks,
            private=self.graph.private,
            cuts=tuple(_record(p) for c in self.constraints for p in c.parts),
            nodes=tuple(master.tree.records),
            leaves=tuple(leaves),
        )

    def _sum(self, parts: tuple[Multiplier, ...], *, feasibility: bool) -> Constraint:
        u = np.zeros(self.graph.n_columns)
        for part in parts:
            np.add.at(u, part.columns, part.u)
        return Constraint(u, math.fsum(p.h for p in parts), feasibility, parts)

    def _nodes_left(self) -> int | None:
        limit = self.ledger.limits.max_nodes
        return None if limit is None else max(1, limit - self.ledger.nodes)


def _constant_parts(oracle: Oracle) -> list[Multiplier]:
    root = Box(oracle.graph.lower, oracle.graph.upper)
    zero = np.zeros(oracle.scope.shape[1])
    bounds = oracle.upper(root)
    return [
        Multiplier(int(b), oracle.scope[i], zero, float(bounds[i]), False) for i, b in enumerate(oracle.batch.blocks)
    ]


def _record(part: Multiplier) -> CutRecord:
    return CutRecord(part.block, part.columns, part.u, part.h, part.feasibility, witness=part.witness)
