"""The problem and the state of one start as flat arrays for the compiled search.

Coordinates are whitened so that W0^-1 becomes the identity (``known``: so that Lambda does). This changes F by a
constant only, because the exponents nu add up to the same for every partition, and every scatter matrix M of the
search then satisfies M >= I, which keeps its factorisation safe.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.problem import MixtureProblem

# The first two keep matrices, the others diagonals or traces.
FULL, TIED, DIAG, SPHERICAL, KNOWN = range(5)
KINDS = {"full": FULL, "diag": DIAG, "spherical": SPHERICAL, "known": KNOWN, "tied": TIED}


class Instance(NamedTuple):
    """Read-only arrays of a problem.

    `offset` is what the incremental value lacks to be `log_map`. `soft_gain` is what sharing a cluster brings: w for
    a soft must-link, -w for a soft cannot-link. `order` lists the items by decreasing number of cannot-links.
    """

    kind: int
    n_clusters: int
    a0: float
    b0: float
    v: float
    total_pseudo_weight: float
    shared_weight: float
    weight: FloatArray
    points: IntArray
    mean: FloatArray
    group_index: IntArray
    group_scatter: FloatArray
    conflict_start: IntArray
    conflict_items: IntArray
    soft_start: IntArray
    soft_items: IntArray
    soft_gain: FloatArray
    fixed: IntArray
    order: IntArray
    min_size: int
    max_size: int
    offset: float


class State(NamedTuple):
    """Labels of one start and the statistics of its clusters.

    Slots 0..K-1 are the clusters, K and K+1 hold trial copies. `mean` is the posterior mean sum y/(b0+n). `scatter`
    is M of the slot as the covariance type sees it: a matrix (D, D) for ``full``, its diagonal (1, D) for ``diag``,
    its trace (1, 1) for ``spherical`` and ``known``; ``tied`` has one pooled matrix and one trial copy of it.
    `inverse` is the inverse Cholesky factor of a matrix. `spread` is what enters the value: the log-determinant, or
    the trace when the covariance is known. `chain` and `in_chain` are working space of the exchanges.
    """

    labels: IntArray
    weight: FloatArray
    points: IntArray
    mean: FloatArray
    scatter: FloatArray
    inverse: FloatArray
    spread: FloatArray
    value: FloatArray
    chain: IntArray
    in_chain: IntArray


def compile_problem(problem: MixtureProblem) -> Instance:
    """Arrays of the problem in whitened coordinates.

    Copies of the problem's read-only arrays: compiled code tells them apart from writable ones, and would be compiled
    anew for the parts of an instance that the search looks at on their own.
    """
    prior, items, K = problem.prior, problem.items, problem.n_clusters
    kind = KINDS[prior.covariance_type]
    mean, group_scatter = _whitened(problem)
    soft_start, soft_items, soft_gain = _soft_rows(problem)
    return Instance(
        kind=kind,
        n_clusters=K,
        a0=prior.weight_concentration,
        b0=prior.mean_precision,
        v=prior.prior_weight,
        total_pseudo_weight=items.total_weight + K * (prior.weight_concentration - 1.0),
        shared_weight=prior.prior_weight + K - 1.0 + items.total_weight,
        weight=items.weight.copy(),
        points=problem.points.copy(),
        mean=mean,
        group_index=items.group_index.copy(),
        group_scatter=group_scatter,
        conflict_start=problem.conflict_start.copy(),
        conflict_items=problem.conflict_items.copy(),
        soft_start=soft_start,
        soft_items=soft_items,
        soft_gain=soft_gain,
        fixed=problem.fixed.copy(),
        order=np.argsort(-np.diff(problem.conflict_start), kind="stable"),
        min_size=problem.min_size,
        max_size=problem.max_size,
        offset=_offset(problem),
    )


def new_state(instance: Instance, labels: IntArray) -> State:
    """Empty statistics around the given labels."""
    n_items, D = instance.mean.shape
    slots = instance.n_clusters + 2
    shapes = {FULL: (slots, D, D), DIAG: (slots, 1, D), TIED: (2, D, D)}
    shape = shapes.get(instance.kind, (slots, 1, 1))
    return State(
        labels=labels,
        weight=np.zeros(slots),
        points=np.zeros(slots, dtype=np.int64),
        mean=np.zeros((slots, D)),
        scatter=np.zeros(shape),
        inverse=np.zeros(shape),
        spread=np.zeros(slots),
        value=np.zeros(slots),
        chain=np.zeros(n_items, dtype=np.int64),
        in_chain=np.zeros(n_items, dtype=np.int64),
    )


def _whitened(problem: MixtureProblem) -> tuple[FloatArray, FloatArray]:
    factor = np.linalg.cholesky(problem.prior.covariance)
    mean = solve_triangular(factor, problem.items.mean.T, lower=True).T
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
    return np.ascontiguousarray(mean), inverse @ problem.items.group_scatter @ inverse.T


def _offset(problem: MixtureProblem) -> float:
    prior, K, D = problem.prior, problem.n_clusters, problem.prior.dimension
    log_determinant = 2.0 * float(np.log(np.diag(np.linalg.cholesky(prior.covariance))).sum())
    N = problem.items.total_weight
    offset = K * 0.5 * D * np.log(prior.mean_precision) - problem.soft_constant
    offset -= float(problem.soft_weights[problem.soft_together].sum())
    if prior.covariance_type == "known":
        exponent = K + N
    elif prior.covariance_type == "tied":
        exponent = prior.prior_weight + K - 1.0 + N
        offset += 0.5 * D * exponent * (np.log(exponent) - 1.0)
    else:
        exponent = K * prior.prior_weight + N
    return float(offset - 0.5 * exponent * log_determinant)


def _soft_rows(problem: MixtureProblem) -> tuple[IntArray, IntArray, FloatArray]:
    ends = np.concatenate([problem.soft_pairs, problem.soft_pairs[:, ::-1]])
    gain = np.tile(np.where(problem.soft_together, problem.soft_weights, -problem.soft_weights), 2)
    order = np.argsort(ends[:, 0], kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(ends[:, 0], minlength=len(problem.items)))])
    return start.astype(np.int64), np.ascontiguousarray(ends[order, 1]), gain[order]
