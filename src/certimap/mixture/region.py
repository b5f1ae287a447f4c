"""What is proved around an answer: no clustering with at most r moved points is better.

Values of the search are computed in float64. Whitened, every M_S >= I, so that an error E in M_S changes log det M_S by
at most D |E|. With N terms in every sum, T the trace of the scatter of all points and R the squared diameter of the
points, one value and one gain have an error of at most

    (nu/2) 2^-53 T (D (N + 64 + 4 D cond) + 8 D^2 (1 + R)),

cond from the whitening: 1 - G_ii >= 1/(1+R) is what the gain of a point that leaves its cluster is divided by. A node
adds up one such value and fewer than (r+1)^2 gains and bounds; twice that is the margin of the claim, but at least 1e-9
of the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certimap.engines.ledger import Ledger
from certimap.mixture.clusters import IntArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.search.arrays import FULL, Instance, compile_problem, new_state
from certimap.mixture.search.region import BETTER, PROVED, search_region
from certimap.results import StopReason

NEIGHBOURHOOD = "neighbourhood"  # where certificates keep it among their details
MOST_MOVES = 6
MOST_WORK, LEAST_WORK = 1e9, 3e7  # steps of the innermost loops for one r
WORK_PER_NODE = 100.0  # of the pricing proof: about as much time as that took
WORK_PER_SECOND = 5e7
TIME_SHARE = 0.05  # of a time limit that has struck
MOST_MEMORY = 2e8
LEAST_MARGIN = 1e-9  # relative to the value


@dataclass(frozen=True)
class Region:
    """No clustering with at most `moves` moved items is worth more than the answer and the margin."""

    moves: int
    margin: float
    tied: bool

    def __str__(self) -> str:
        points = f"{self.moves} point{'s' if self.moves > 1 else ''} moved"
        tied = " (those tied by must-links count as one)" if self.tied else ""
        return f"all clusterings with at most {points}{tied}, to {self.margin:.0e}"

    def record(self) -> dict[str, Any]:
        """For the certificate."""
        return {"moves": self.moves, "margin": self.margin}


def prove_region(problem: MixtureProblem, labels: IntArray, ledger: Ledger) -> tuple[Region | None, IntArray]:
    """The largest region that the limits allow, and labels of the items: the given ones, or better ones it is about."""
    instance = compile_problem(problem)
    region: Region | None = None
    moves, spent, expected = 1, 0.0, 0.0
    while moves <= min(MOST_MOVES, int((problem.fixed < 0).sum())) and problem.n_clusters > 1:
        pruned, work = moves > 1 and _prunable(problem, instance, moves), _allowed_work(ledger)
        if (expected if pruned else _exhaustive_work(instance, moves)) > work:
            break
        margin = _margin(problem, instance, moves, problem.log_map(labels))
        state, done = new_state(instance, labels.copy()), np.zeros(2)
        verdict = search_region(instance, state, labels, moves, 0.5 * margin, pruned, work, done)
        if verdict == BETTER:
            labels, region, moves = state.labels.copy(), None, 1
            continue
        if verdict != PROVED:
            break
        region = Region(moves, margin, len(labels) < len(problem.data))
        # Work grows by about the same factor from each r to the next.
        expected = float(done[1]) ** 2 / spent if moves > 2 else 0.0
        spent, moves = float(done[1]), moves + 1
    return region, labels


def _allowed_work(ledger: Ledger) -> float:
    """Less where time is short; none where the solve has to stop for other reasons."""
    reason, limit = ledger.urgent_reason(), ledger.limits.time_limit
    if reason is not None and reason is not StopReason.TIME:
        return 0.0
    most = min(MOST_WORK, LEAST_WORK + WORK_PER_NODE * ledger.nodes)
    if limit is None:
        return most
    return min(most, WORK_PER_SECOND * max(limit - ledger.seconds, TIME_SHARE * limit))


def _prunable(problem: MixtureProblem, instance: Instance, moves: int) -> bool:
    """Bounds on joint gains are there for single points of weight 1 under full covariance."""
    N, K = len(instance.mean), instance.n_clusters
    plain = instance.kind == FULL and not len(instance.group_scatter) and bool((instance.weight == 1.0).all())
    return plain and 8.0 * moves * K * N * N <= MOST_MEMORY


def _exhaustive_work(instance: Instance, moves: int) -> float:
    N, D = instance.mean.shape
    nodes: float = float(N * (instance.n_clusters - 1)) ** (moves - 1) / math.factorial(moves - 1)
    return nodes * float(N * instance.n_clusters * (D + 1) ** 2)


def _margin(problem: MixtureProblem, instance: Instance, moves: int, value: float) -> float:
    N, D = problem.data.shape
    centred = instance.mean
    square = (centred**2).sum(axis=1)
    trace = float(D + instance.weight @ square + np.trace(instance.group_scatter, axis1=1, axis2=2).sum())
    diameter = 4.0 * float(square.max(initial=0.0))
    condition = math.sqrt(float(np.linalg.cond(problem.prior.covariance)))
    nu = instance.v + instance.n_clusters + float(instance.weight.sum())
    once = D * (N + 64.0 + 4.0 * D * condition) + 8.0 * D * D * (1.0 + diameter)
    error = 0.5 * nu * 2.0**-53 * trace * once
    return float(max(LEAST_MARGIN * max(1.0, abs(value)), 4.0 * (moves + 1) ** 2 * error))
