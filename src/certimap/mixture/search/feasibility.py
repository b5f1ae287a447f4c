"""A feasible labelling by integer programming, for the problems on which the greedy starts and their repair fail."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from certimap.mixture.clusters import IntArray
from certimap.mixture.problem import MixtureProblem

# Above this many binaries the relaxation alone may take longer than the whole search.
_MOST_VARIABLES = 100_000


@dataclass(frozen=True)
class Feasibility:
    """A feasible labelling, or none and whether that is proved."""

    labels: IntArray | None
    proved_infeasible: bool


def find_feasible(problem: MixtureProblem, seed: int, node_limit: int = 20_000) -> Feasibility:
    """Solve for binary z_ik: one cluster an item, cannot-links, sizes, fixed items; a random objective decides."""
    K, n_items = problem.n_clusters, len(problem.items)
    if n_items * K > _MOST_VARIABLES:
        return Feasibility(None, proved_infeasible=False)
    rows = np.repeat(np.arange(n_items), np.diff(problem.conflict_start))
    links = np.stack([rows, problem.conflict_items], axis=1)[rows < problem.conflict_items]
    column = np.arange(n_items * K).reshape(n_items, K)
    one_cluster = _matrix(np.repeat(np.arange(n_items), K), column.ravel(), np.ones(n_items * K), n_items * K)
    sizes = _matrix(np.tile(np.arange(K), n_items), column.ravel(), np.repeat(problem.points, K), n_items * K)
    constraints = [
        LinearConstraint(one_cluster, 1.0, 1.0),
        LinearConstraint(sizes, problem.min_size, problem.max_size),
    ]
    if len(links):
        number = np.arange(len(links) * K)
        ends = np.concatenate([column[links[:, 0]].ravel(), column[links[:, 1]].ravel()])
        apart = _matrix(np.tile(number, 2), ends, np.ones(len(ends)), n_items * K)
        constraints.append(LinearConstraint(apart, -np.inf, 1.0))
    lower, upper = np.zeros((n_items, K)), np.ones((n_items, K))
    pinned = np.flatnonzero(problem.fixed >= 0)
    upper[pinned] = 0.0
    lower[pinned, problem.fixed[pinned]] = upper[pinned, problem.fixed[pinned]] = 1.0
    result = milp(
        np.random.default_rng(seed).random(n_items * K),
        integrality=np.ones(n_items * K, dtype=np.int64),
        bounds=Bounds(lower.ravel(), upper.ravel()),
        constraints=constraints,
        options={"node_limit": node_limit, "mip_rel_gap": 1e9},
    )
    if result.x is None:
        return Feasibility(None, proved_infeasible=result.status == 2)
    labels = np.asarray(result.x).reshape(n_items, K).argmax(axis=1).astype(np.int64)
    return Feasibility(None if problem.violations(labels) else labels, proved_infeasible=False)


def _matrix(rows: IntArray, columns: IntArray, values: NDArray[Any], width: int) -> csr_array:
    return coo_array((values.astype(np.float64), (rows, columns)), shape=(int(rows.max()) + 1, width)).tocsr()
