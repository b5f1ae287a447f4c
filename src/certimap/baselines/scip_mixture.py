"""The mixture as a mixed-integer nonlinear program for a general branch-and-bound solver.

In coordinates with W0 = I (y -> W0^{1/2} (y - m0), which adds -(N + K v)/2 log det W0^-1 to every value) the
precision is Lambda = R'R with R lower triangular, and c = R mu. With binaries z_ik and the variables p, R, c the
program is

    max  sum_i t_i + sum_k [(a0-1) s_k + v sum_d r_kd - |R_k|^2 / 2 - (b0/2) |c_k|^2 + (D/2) log b0]
    s_k <= log p_k,   r_kd <= log R_k,dd,   sum_k p_k <= 1 + K delta,   sum_k z_ik = 1,
    t_i <= l_ik where z_ik = 1,   l_ik <= s_k + sum_d r_kd - |R_k y_i - c_k|^2 / 2.

Every box below contains an optimum, so that the dual bound is one on the mixture's MAP, as far as SCIP's arithmetic can
be trusted: Lambda = nu M^-1 with M >= I and nu <= v + N gives |R| <= sqrt(v + N); M <= I + sum y y' and nu >= v give
R_dd^2 >= v / lambda_max; the posterior means lie among the points and 0. An empty cluster has weight 0, whose
logarithm no box contains: p_k >= delta instead, with the same amount added to their sum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from certimap.baselines.mixture_posterior import log_density
from certimap.baselines.run import MethodRun, unbounded
from certimap.baselines.scip import NAME, Search, maximise, new_program
from certimap.mixture.clusters import IntArray
from certimap.mixture.prior import FloatArray
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import point_of

WEIGHT_SLACK = 1e-6  # N K times delta, and about what the relaxation of the weights adds to the bound


@dataclass(frozen=True, eq=False)
class _Boxes:
    """Whitened points and bounds on the variables, as derived above."""

    Y: FloatArray
    half: FloatArray  # W0^-1 = half half'
    delta: float
    largest_root: float
    smallest_root: float
    largest_centre: float

    @property
    def log_weight(self) -> float:
        return float(np.log(self.delta))

    @property
    def lowest_density(self) -> float:
        """Below every l_ik that a feasible point has."""
        D = int(self.Y.shape[1])
        return self.log_weight + D * float(np.log(self.smallest_root)) - 2.0 * self.largest_centre**2 * D

    @property
    def highest_density(self) -> float:
        return int(self.Y.shape[1]) * max(0.0, float(np.log(self.largest_root)))


def scip_mixture(
    problem: MixtureProblem, *, time_limit: float | None = 600.0, max_nodes: int | None = None
) -> MethodRun:
    """Branch and bound on the direct formulation, under must-links and known labels.

    `returned` is SCIP's best point, `refitted` the best of its stored labellings, both valued in closed form; what SCIP
    itself says is in the details. Its dual bound is a claim: it rests on floating-point tolerances.
    """
    _check(problem)
    program = new_program(time_limit, max_nodes)
    boxes = _boxes(problem)
    started = time.perf_counter()
    objective, read = _formulate(program, problem, boxes)
    found = maximise(program, objective, read)
    offset = -0.5 * (len(problem.data) + problem.n_clusters * problem.prior.prior_weight) * 2.0
    offset *= float(np.log(np.diag(boxes.half)).sum())
    return _outcome(problem, found, offset, time.perf_counter() - started)


def _outcome(problem: MixtureProblem, found: Search, offset: float, seconds: float) -> MethodRun:
    statistics = {"nodes": float(found.nodes), "solutions": float(len(found.solutions))}
    details = {"stated value": None if found.primal is None else found.primal + offset}
    bound = found.dual + offset if np.isfinite(found.dual) and abs(found.dual) < 1e19 else None
    if not found.solutions:
        nothing = unbounded(None, -np.inf, found.stop_reason, statistics)
        return MethodRun(NAME, nothing, nothing, seconds, bound, details)
    first = found.solutions[0]
    returned = unbounded(
        dict(zip(("z", "pi", "mu", "Lambda"), first, strict=True)),
        log_density(problem, *first),
        found.stop_reason,
        statistics,
    )
    labellings = [solution[0] for solution in found.solutions]
    best = max(labellings, key=lambda labels: problem.log_map(problem.item_labels(labels)))
    value = problem.log_map(problem.item_labels(best))
    refitted = unbounded(point_of(problem, best), value, found.stop_reason, statistics)
    return MethodRun(NAME, returned, refitted, seconds, bound, details)


def _formulate(program: Any, problem: MixtureProblem, boxes: _Boxes) -> tuple[Any, Any]:
    """Fill the program; returns the objective and what reads (labels, pi, mu, Lambda) off a solution."""
    from pyscipopt import log, quicksum

    prior, K, items = problem.prior, problem.n_clusters, len(problem.items)
    D, top = prior.dimension, boxes.largest_root
    z = [[program.addVar(vtype="B") for _ in range(K)] for _ in range(items)]
    p = [program.addVar(lb=boxes.delta, ub=1.0) for _ in range(K)]
    program.addCons(quicksum(p) <= 1.0 + K * boxes.delta)
    roots, centres, normals, parts = [], [], [], []
    for k in range(K):
        s = program.addVar(lb=boxes.log_weight, ub=0.0)
        program.addCons(s <= log(p[k]))
        R = {
            (a, b): program.addVar(lb=boxes.smallest_root if a == b else -top, ub=top)
            for a in range(D)
            for b in range(a + 1)
        }
        c = [program.addVar(lb=-boxes.largest_centre, ub=boxes.largest_centre) for _ in range(D)]
        r = [program.addVar(lb=float(np.log(boxes.smallest_root)), ub=float(np.log(top))) for _ in range(D)]
        for a in range(D):
            program.addCons(r[a] <= log(R[a, a]))
        squares = quicksum(x * x for x in R.values()) + prior.mean_precision * quicksum(x * x for x in c)
        q = program.addVar(lb=0.0)
        program.addCons(0.5 * squares <= q)
        constant = 0.5 * D * float(np.log(prior.mean_precision))
        parts.append((prior.weight_concentration - 1.0) * s + prior.prior_weight * quicksum(r) - q + constant)
        roots.append(R)
        centres.append(c)
        normals.append(s + quicksum(r))
    for item in range(items):
        program.addCons(quicksum(z[item]) == 1)
        if problem.fixed[item] >= 0:
            program.addCons(z[item][int(problem.fixed[item])] == 1)
    if (problem.fixed < 0).all():
        program.addCons(z[0][0] == 1)  # clusters are exchangeable
    for i, y in enumerate(boxes.Y):
        t = program.addVar(lb=boxes.lowest_density, ub=boxes.highest_density)
        parts.append(t)
        for k in range(K):
            density = program.addVar(lb=boxes.lowest_density, ub=boxes.highest_density)
            error = [program.addVar(lb=-2.0 * boxes.largest_centre, ub=2.0 * boxes.largest_centre) for _ in range(D)]
            for a in range(D):
                program.addCons(
                    error[a] == quicksum(float(y[b]) * roots[k][a, b] for b in range(a + 1)) - centres[k][a]
                )
            program.addCons(density <= normals[k] - 0.5 * quicksum(e * e for e in error))
            program.addConsIndicator(t - density <= 0.0, binvar=z[int(problem.point_item[i])][k])

    def read(solution: Any) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        labels = np.array([[solution[x] for x in row] for row in z]).argmax(axis=1)
        weights = np.array([solution[x] for x in p])
        R = np.array(
            [[[solution[root[a, b]] if b <= a else 0.0 for b in range(D)] for a in range(D)] for root in roots]
        )
        c = np.array([[solution[x] for x in centre] for centre in centres])
        whitened = np.array([np.linalg.solve(root, centre) for root, centre in zip(R, c, strict=True)])
        # Back to the data's coordinates: y = half w, Lambda = half^-T R'R half^-1.
        R = np.array([solve_triangular(boxes.half, root.T, lower=True, trans="T").T for root in R])
        Lambda = np.einsum("kba,kbc->kac", R, R)
        return problem.point_labels(labels), weights / weights.sum(), whitened @ boxes.half.T + prior.mean, Lambda

    return quicksum(parts), read


def _boxes(problem: MixtureProblem) -> _Boxes:
    prior, N = problem.prior, len(problem.data)
    half = np.linalg.cholesky(prior.covariance)
    Y = solve_triangular(half, (problem.data - prior.mean).T, lower=True).T
    largest = 1.0 + float(np.linalg.eigvalsh(Y.T @ Y)[-1])
    root = float(np.sqrt(prior.prior_weight + N)) * 1.000001  # as all boxes, a little wider than derived
    return _Boxes(
        Y,
        np.asarray(half, dtype=np.float64),
        delta=WEIGHT_SLACK / (problem.n_clusters * problem.objective.total_pseudo_weight),
        largest_root=root,
        smallest_root=float(np.sqrt(prior.prior_weight / largest)) * 0.999999,
        largest_centre=root * float(np.linalg.norm(Y, axis=1).max()),
    )


def _check(problem: MixtureProblem) -> None:
    prior = problem.prior
    if prior.covariance_type != "full":
        raise ValueError(f"{NAME} knows full covariances only, got {prior.covariance_type!r}.")
    if prior.prior_weight <= 0.0:
        raise ValueError(
            f"{NAME} needs degrees_of_freedom_prior above the dimension {prior.dimension}, "
            f"got {prior.degrees_of_freedom:g}: the precision of an empty cluster has no positive lower bound."
        )
    limited = problem.min_size > 0 or problem.max_size < len(problem.data)
    if limited or len(problem.conflict_items) or len(problem.soft_pairs):
        raise ValueError(f"{NAME} takes must-links and known labels only, got other constraints.")
    if (problem.sample_weight != 1.0).any():
        raise ValueError(f"{NAME} takes no sample weights, got {problem.sample_weight.max():g} as the largest.")
