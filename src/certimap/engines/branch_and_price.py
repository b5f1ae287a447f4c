"""Column generation with certified pricing inside a best-first tree (algorithm "branch-and-price").

For any multipliers lambda and any certified P >= max over admissible sets S of c(S) - lambda(S), partitions into K
clusters are worth at most  offset + sum_i lambda_i + K P.  A node drives lambda by a master over cheap columns, then
has the block certify P: at an optimum of the column master, or, where proofs are long, at the point of largest margin
whose bound is just small enough. What gap remains is closed by listing all columns that can be in a better partition
and searching the list exactly, or by Ryan-Foster branching.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from certimap.certificate import Certificate
from certimap.engines.column_master import ColumnMaster, ColumnPool, DualPoint
from certimap.engines.ledger import Ledger
from certimap.engines.margin_search import MarginSearch, Room
from certimap.engines.partition_incumbent import Incumbent
from certimap.engines.partition_problem import labels_of, read_problem
from certimap.engines.partition_search import PartitionSearch
from certimap.engines.price_tree import LeafKind, LeafProof, PriceNode, PriceTree
from certimap.engines.proof import certify
from certimap.engines.ryan_foster import choose_pair
from certimap.engines.set_partitioning import best_cover
from certimap.engines.stabilisation import TrustBox
from certimap.graph.graph import FactorGraph
from certimap.oracles.partition import ColumnRules, Effort, Floats, Ints, Masks
from certimap.oracles.subsets import heaviest_set
from certimap.results import StopReason

FIRST_NODES = 5_000  # of the pricing that gives the first bound, whatever the limits
FEASIBILITY_NODES = 100_000
LISTED_COLUMNS = 2000
COVER_STEPS = 200_000
PRECISION = 1e-9  # relative: smaller reduced values are noise of the LP
SPARE = 0.02  # of the room: lets certified pricing tell the binding columns from better ones despite its rounding
DUAL_SHARE = 0.4  # of the time left, for the search of multipliers before certified pricing
LEAST_ROUNDS, ROUND_NODES = 20, 5_000  # a round of that search costs about so many nodes: no more than the proof may
ROUNDING = 1e-12  # relative margin between a closed-form value and what its exact arithmetic might give


class BranchAndPrice:
    """One solve of one graph; `run` returns why it stopped, `tree.details()` is the proof."""

    def __init__(
        self,
        graph: FactorGraph,
        ledger: Ledger,
        *,
        seed: int,
        n_jobs: int = 1,
        starts: Sequence[Ints] | None = None,
    ) -> None:
        """`starts` are labels of admissible partitions to begin with, the best first; None: the block searches."""
        self.problem = read_problem(graph)
        self.block = self.problem.block
        self.block.n_threads = n_jobs
        self.ledger = ledger
        self.tree = PriceTree()
        self.pool = ColumnPool(self.block, self.problem.n_items)
        self.solves = 0
        self._starts = starts
        self._rng = np.random.default_rng(seed)
        self.incumbent = Incumbent(self.problem, self.pool, ledger, self._rng)
        none = np.zeros(self.problem.n_items, dtype=bool)
        self.empty_value = self.block.value(none) if self.problem.min_size <= 0 else None

    def run(self) -> StopReason:
        if self.incumbent.start(self._starts):
            self.ledger.record("H", open_nodes=len(self.tree), columns=len(self.pool))
        while len(self.tree):
            self.ledger.prove(self.tree.bound())
            reason = self.ledger.stop_reason()
            # The root is always worked on until it has a bound: a result without one would be of little use.
            if reason is not None and self.ledger.upper_bound < math.inf:
                return reason
            self.process(self.tree.pop())
        self.ledger.prove(self.tree.bound())
        proved = self.ledger.upper_bound <= with_rounding(self.ledger.log_map)
        return self.ledger.stop_reason() or (StopReason.EXHAUSTED if proved else StopReason.STALLED)

    def process(self, node: PriceNode) -> None:
        """Bound the node by column generation, then by its list of columns; close it or split it."""
        self.ledger.nodes += 1
        rules = self.problem.rules(node.together, node.apart)
        if rules.contradictory:
            node.improve(LeafProof(LeafKind.CONTRADICTION, -math.inf))
        if node.bound <= self.ledger.cutoff or not self.seed_columns(node, rules):
            self.tree.close(node)
            return
        deep = self.block.margin_pays and self.incumbent.labels is not None
        shares = self.deepen(node, rules) if deep else self.generate(node, rules)
        if not deep and node.bound > self.ledger.cutoff and self.ledger.stop_reason() is None:
            self.close_by_list(node, rules)
        closed = node.bound <= self.ledger.cutoff or node.proof.kind is LeafKind.COLUMNS or self._out_of_limits()
        pair = None if closed else self.block.relaxed_pair(rules) or choose_pair(rules, *shares)
        if pair is None:
            self.tree.close(node)
        else:
            self.tree.split(node, pair)
        self.record("B" if node.depth else "C")

    def certificate(self, conflict: tuple[str, ...] = (), more: Mapping[str, Any] | None = None) -> Certificate | None:
        """The proof of the ledger's bound, with `more` that is claimed; None if the root was never priced."""
        details = self.tree.details()
        if details is None:
            return None
        return certify(
            self.problem.graph,
            self.ledger,
            algorithm="branch-and-price",
            conflict=conflict,
            details={**details, **(more or {})},
        )

    # ----------------------------------------------------------------------------------------------- column generation
    def seed_columns(self, node: PriceNode, rules: ColumnRules) -> bool:
        """See that the columns known so far admit a fractional partition; False if it is proved that none exists."""
        if len(self.incumbent.clusters_in(rules)) == self.problem.n_clusters:
            return True
        master = ColumnMaster(rules, self.problem.n_clusters, None if self.empty_value is None else 0.0)
        one = np.ones(rules.n_groups)
        master.restrict(-one, one)
        positions = self._admissible(rules)
        master.add(positions, self.pool.masks[positions], np.zeros(len(positions)))
        while True:
            weight, heaviest = 1.0, None
            multipliers = np.zeros(self.problem.n_items)
            if len(master.columns):
                dual = self._solve(master)
                if dual is None or dual.value >= -PRECISION:
                    return True
                multipliers = dual.items
                weight, heaviest = heaviest_set(-multipliers, rules, FEASIBILITY_NODES)
                limit = ROUNDING + max(weight, 0.0 if self.empty_value is not None else weight)
                if self.total(multipliers, limit) < -PRECISION:
                    node.improve(LeafProof(LeafKind.INFEASIBLE, -math.inf, multipliers, limit))
                    return False
            else:
                weight, heaviest = heaviest_set(np.ones(self.problem.n_items), rules, FEASIBILITY_NODES)
            if heaviest is None:
                return self._nothing_admissible(node, weight)
            position = self.pool.add(heaviest[None, :])
            if not master.add(position, heaviest[None, :], np.zeros(1)):
                return True

    def generate(self, node: PriceNode, rules: ColumnRules) -> tuple[Masks, Floats]:
        """Column generation until the node is closed or its LP solved; the columns of the last LP with their shares."""
        problem, ledger = self.problem, self.ledger
        master = ColumnMaster(rules, problem.n_clusters, self.empty_value)
        positions = self._admissible(rules)
        master.add(positions, self.pool.masks[positions], self.pool.values[positions])
        box = self._first_box(node, rules)
        while True:
            master.restrict(box.lower, box.upper)
            dual = self._solve(master)
            if dual is None:
                break
            noise = PRECISION * (1.0 + abs(dual.sigma))
            found = self.block.heuristic_columns(dual.items, rules, self._rng, self.pool.masks[:0])
            best, fresh = self._improving(found, dual, noise)
            estimate = problem.offset + dual.value + problem.n_clusters * (best - dual.sigma)
            if not len(fresh) or estimate <= ledger.cutoff or node.bound == math.inf:
                columns = self.certify(node, rules, dual, noise)
                best, proved = self._improving(columns, dual, noise)
                fresh = np.union1d(fresh, proved)
            if node.bound <= ledger.cutoff or ledger.stop_reason() is not None:
                break
            if len(fresh):
                box.report(dual.groups, dual.value + problem.n_clusters * (best - dual.sigma))
                master.add(fresh, self.pool.masks[fresh], self.pool.values[fresh])
            elif box.binds(dual.groups):
                box.release(dual.groups)
            else:
                break
        masks, shares = self.pool.masks[master.columns], master.shares()
        self.incumbent.offer_rounded(rules, masks, shares)
        return masks, shares

    def deepen(self, node: PriceNode, rules: ColumnRules) -> tuple[Masks, Floats]:
        """Bound the node at the point of largest margin and close it by its list of columns, with less room where that
        is too long; unless that closes it, the columns found with their shares.
        """
        problem, ledger = self.problem, self.ledger
        near = self.incumbent.clusters_in(rules)
        search = MarginSearch(self.block, self.pool, rules, problem.n_clusters, self.empty_value, near, self._rng)
        room = Room(ledger.cutoff - ledger.log_map, scale=max(1.0, abs(self.incumbent.value)))
        rounded = False
        while ledger.stop_reason() is None or ledger.upper_bound == math.inf:
            ledger.iterations += 1
            wanted = self.incumbent.value - problem.offset + (1.0 - SPARE) * room.width
            dual = search.settle(wanted, self._dual_effort())
            if dual is None:
                if not rounded and self._round(rules):
                    return self.deepen(node, rules)  # all is measured from the incumbent: begin again
                rounded = True
                least = search.master.least_bound()
                if least is None or not room.rule_out(least + problem.offset - self.incumbent.value):
                    break
                continue
            columns = self.certify(node, rules, dual, 0.9 * SPARE * room.width / problem.n_clusters)
            if node.bound <= ledger.cutoff:
                break
            if search.add(columns, dual):
                continue
            if ledger.stop_reason() is not None or not room.holds(node.bound - self.incumbent.value):
                break
            if self.close_by_list(node, rules) or not room.narrow():
                break
        open_ = node.bound > ledger.cutoff and node.proof.kind is not LeafKind.COLUMNS
        return self._shares(rules) if open_ and not self._out_of_limits() else (self.pool.masks[:0], np.zeros(0))

    def certify(self, node: PriceNode, rules: ColumnRules, dual: DualPoint, noise: float) -> Masks:
        """Certified pricing at these multipliers; improves the node's bound and returns the columns met."""
        tolerance = 0.01 * self.ledger.limits.gap * max(1.0, abs(self.ledger.log_map)) / self.problem.n_clusters
        if not math.isfinite(tolerance):
            tolerance = noise
        before = self.ledger.nodes

        def progress(price: float, nodes: int) -> bool:
            self.ledger.nodes = before + nodes
            if not node.depth and price < math.inf:
                self.record("C", pending=min(node.bound, self._upper(dual.items, price)))
            return self.ledger.stop_reason() is not None

        pricing = self.block.certified_bound(
            dual.items, rules, dual.sigma + noise, max(noise, tolerance), self._effort(progress)
        )
        self.ledger.nodes = before + pricing.nodes
        bound = self._upper(dual.items, pricing.bound)
        node.improve(LeafProof(LeafKind.BOUND, bound, dual.items, pricing.bound, pricing=pricing.proof))
        if not node.depth:
            self.record("C", pending=node.bound)
        return pricing.columns

    # --------------------------------------------------------------------------------------------- closing the LP gap
    def close_by_list(self, node: PriceNode, rules: ColumnRules) -> bool:
        """List every column that a partition better than the incumbent may contain, and find the best such partition.

        False if there are too many of them.

        If all clusters have reduced value <= P and the partition is worth more than L, none lies below
        L - offset - sum lambda - (K-1) P.
        """
        proof, ledger = node.proof, self.ledger
        if proof.multipliers is None or ledger.log_map == -math.inf:
            return False
        clusters, incumbent = self.problem.n_clusters, ledger.log_map - self.problem.offset
        room = self.total(proof.multipliers, proof.price) - incumbent
        threshold = proof.price - room
        listed = self.columns_above(threshold, proof, rules, LISTED_COLUMNS)
        if listed is None:
            return False
        positions = self.pool.add(listed)
        slack = proof.price - (self.pool.values[positions] - listed @ proof.multipliers)
        empty = None if self.empty_value is None else proof.price - self.empty_value
        cover = best_cover(listed, slack, clusters, empty, room, COVER_STEPS)
        if cover.columns is not None:
            self.incumbent.offer(labels_of(listed[cover.columns]))
        if cover.complete:
            # The clusters of a relaxed value may add up to more than the partition is worth.
            relaxed = -math.inf if cover.columns is None else self._upper(proof.multipliers, proof.price) - cover.slack
            value = with_rounding(max(ledger.log_map, relaxed))
            node.improve(LeafProof(LeafKind.COLUMNS, value, proof.multipliers, proof.price, listed, proof.pricing))
        return cover.complete

    def columns_above(self, threshold: float, proof: LeafProof, rules: ColumnRules, limit: int) -> Masks | None:
        """All columns with c(S) - lambda(S) above the threshold, or more; None if there are too many."""
        ledger, before = self.ledger, self.ledger.nodes

        def progress(_price: float, nodes: int) -> bool:
            ledger.nodes = before + nodes
            return ledger.urgent_reason() is not None

        assert proof.multipliers is not None
        return self.block.enumerate_columns(
            proof.multipliers, rules, proof.price, threshold, limit, self._effort(progress)
        )

    # ------------------------------------------------------------------------------------------------------- internal
    def record(self, source: str, pending: float = -math.inf) -> None:
        """A log line; `pending` is the bound of the node in hand, which is neither open nor closed."""
        self.ledger.prove(max(self.tree.bound(), pending))
        self.ledger.record(source, open_nodes=len(self.tree) + (pending > -math.inf), columns=len(self.pool))

    def _solve(self, master: ColumnMaster) -> DualPoint | None:
        self.solves += 1
        self.ledger.iterations += 1
        return master.solve()

    def _first_box(self, node: PriceNode, rules: ColumnRules) -> TrustBox:
        """Around the parent's multipliers, or between what the incumbent's items add at home and elsewhere."""
        if node.proof.multipliers is not None:
            centre = rules.summed(node.proof.multipliers)
            scale = float(np.abs(centre).mean()) + 1e-3
            return TrustBox(centre, np.full(rules.n_groups, 0.1 * scale))
        if self.incumbent.labels is None:
            largest = float(np.abs(self.pool.values).max(initial=1.0))
            return TrustBox(np.zeros(rules.n_groups), np.full(rules.n_groups, largest))
        own, other = PartitionSearch(self.block, rules, self.problem.n_clusters).marginals(self.incumbent.labels)
        spread = np.abs(own - other)
        return TrustBox(0.5 * (own + other), 0.5 * spread + 0.05 * float(spread.mean()) + 1e-6)

    def _improving(self, columns: Masks, dual: DualPoint, noise: float) -> tuple[float, Ints]:
        """Largest reduced value (at least sigma), and the positions of the columns above sigma."""
        positions = self.pool.add(columns)
        reduced = self.pool.values[positions] - columns @ dual.items
        return float(reduced.max(initial=dual.sigma)), positions[reduced > dual.sigma + noise]

    def _shares(self, rules: ColumnRules) -> tuple[Masks, Floats]:
        """The columns found so far, with their shares in the best fractional partition."""
        master = ColumnMaster(rules, self.problem.n_clusters, self.empty_value)
        positions = self._admissible(rules)
        master.add(positions, self.pool.masks[positions], self.pool.values[positions])
        solved = self._solve(master) is not None
        return self.pool.masks[master.columns], master.shares() if solved else np.zeros(len(positions))

    def _round(self, rules: ColumnRules) -> bool:
        """Whether the best fractional partition of the columns found leads to a better whole one."""
        before = self.incumbent.value
        self.incumbent.offer_rounded(rules, *self._shares(rules))
        return self.incumbent.value > before

    def _admissible(self, rules: ColumnRules) -> Ints:
        return np.flatnonzero(rules.admits(self.pool.masks)).astype(np.int64)

    def _upper(self, multipliers: Floats, price: float) -> float:
        """offset + sum_i lambda_i + K P, rounded up."""
        return math.nextafter(self.problem.offset + self.total(multipliers, price), math.inf)

    def total(self, multipliers: Floats, price: float) -> float:
        """sum_i lambda_i + K P, correctly rounded."""
        return math.fsum([*multipliers.tolist(), *[price] * self.problem.n_clusters])

    def _nothing_admissible(self, node: PriceNode, weight: float) -> bool:
        """No set was found: if the search was complete, there is none, and any multipliers show it."""
        if weight > -math.inf:
            return True
        node.improve(LeafProof(LeafKind.CONTRADICTION, -math.inf))
        return False

    def _out_of_limits(self) -> bool:
        """Whether no node will be worked on any more."""
        return self.ledger.stop_reason() is not None and self.ledger.upper_bound < math.inf

    def _effort(self, progress: Callable[[float, int], bool] | None = None) -> Effort:
        """What the limits leave; the first bound is computed whatever they say."""
        ledger, limits = self.ledger, self.ledger.limits
        most = self.block.pricing_nodes
        if limits.max_nodes is not None:
            left = max(0, limits.max_nodes - ledger.nodes)
            most = left if most is None else min(most, left)
        seconds = None if limits.time_limit is None else max(0.0, limits.time_limit - ledger.seconds)
        if ledger.upper_bound == math.inf and ledger.stop_reason() is not None:
            most, seconds = FIRST_NODES, None

        return Effort(most, seconds, progress)

    def _dual_effort(self) -> Callable[[], bool]:
        """Whether the search of multipliers may go on, asked once a round: with time and work left for the proof."""
        ledger, limits = self.ledger, self.ledger.limits
        limit, rounds = limits.time_limit, itertools.count()
        until = math.inf if limit is None else ledger.seconds + DUAL_SHARE * (limit - ledger.seconds)
        most = math.inf if limits.max_nodes is None else LEAST_ROUNDS + limits.max_nodes // ROUND_NODES
        return lambda: ledger.urgent_reason() is None and ledger.seconds < until and next(rounds) < most


def with_rounding(value: float) -> float:
    """A number that the exact value of a partition does not exceed if `value` is its closed form in float64."""
    return value + ROUNDING * (1.0 + abs(value)) if math.isfinite(value) else value
