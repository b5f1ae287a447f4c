"""The topic model as a mixed-integer nonlinear program: binaries x_ck, linear counts, and phi(n) = n log n of each.

    max  sum t - sum_d phi(N_d + K a),   t_dk <= phi(n_dk + a),  t_kv <= phi(n_kv + e),  t_k <= -phi(n_k + V e).

A convex function is maximised, so that all the work is in branching on the counts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import xlogy

from certimap.baselines.run import MethodRun, unbounded
from certimap.baselines.scip import NAME, maximise, new_program
from certimap.baselines.topic_posterior import check_unconstrained, run_of
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem

LEAST_PHI = -0.3679  # below -1/e, the smallest value of x log x
POSITIVE = 1e-6  # smallest offset: the logarithm is not defined at 0, and at 1e-9, its tolerance, SCIP fails


def scip_topics(problem: TopicProblem, *, time_limit: float | None = 600.0, max_nodes: int | None = None) -> MethodRun:
    """Branch and bound without constraints; as for the mixture, the dual bound is SCIP's claim."""
    check_unconstrained(problem, NAME)
    program = new_program(time_limit, max_nodes)
    started = time.perf_counter()
    objective, read, slack = _formulate(program, problem)
    found = maximise(program, objective, read)
    seconds = time.perf_counter() - started
    constant = problem.objective.constant
    bound = found.dual + constant + slack if abs(found.dual) < 1e19 else None
    details: dict[str, object] = {"stated value": None if found.primal is None else found.primal + constant}
    if not found.solutions:
        nothing = unbounded(None, -np.inf, found.stop_reason)
        return MethodRun(NAME, nothing, nothing, seconds, bound, details)
    best = max(found.solutions, key=lambda labels: problem.log_map(problem.item_labels(labels)))
    parameters = problem.objective.parameters(best)
    run = run_of(
        NAME,
        problem,
        np.repeat(best, problem.cells.count),
        (parameters.doc_topic, parameters.topic_word),
        seconds,
        stop_reason=found.stop_reason,
    )
    return MethodRun(NAME, run.returned, run.refitted, seconds, bound, details)


def _formulate(program: Any, problem: TopicProblem) -> tuple[Any, Any, float]:
    """Objective, reader of cell labels, and what the shifted zeros may cost the bound."""
    from pyscipopt import log, quicksum

    cells, K, prior = problem.cells, problem.n_topics, problem.prior
    x = [[program.addVar(vtype="B") for _ in range(K)] for _ in range(len(cells))]
    for row in x:
        program.addCons(quicksum(row) == 1)
    program.addCons(x[0][0] == 1)  # topics are exchangeable
    terms: list[Any] = []

    def term(members: IntArray, k: int, offset: float, sign: float) -> None:
        offset = max(offset, POSITIVE)
        most = float(cells.count[members].sum()) + offset
        n = program.addVar(lb=offset, ub=most)
        program.addCons(n == quicksum(int(cells.count[c]) * x[c][k] for c in members) + offset)
        t = program.addVar(lb=LEAST_PHI if sign > 0.0 else -max(float(xlogy(most, most)), 0.0) - 1.0, ub=None)
        program.addCons(t <= sign * n * log(n))
        terms.append(t)

    everywhere = np.arange(len(cells), dtype=np.int64)
    by_document = [np.flatnonzero(cells.document == d) for d in range(cells.n_documents)]
    by_word = [np.flatnonzero(cells.word == v) for v in range(cells.n_words)]
    for k in range(K):
        for members in by_document:
            term(members, k, prior.a, 1.0)
        for members in by_word:
            term(members, k, prior.e, 1.0)
        term(everywhere, k, cells.n_words * prior.e, -1.0)
    # A count n that is shifted by POSITIVE changes phi by at most POSITIVE (1 + log n) + POSITIVE |log POSITIVE|.
    largest = float(cells.count.sum()) + 1.0
    shifted = (prior.a < POSITIVE) * cells.n_documents + (prior.e < POSITIVE) * (cells.n_words + 1)
    slack = shifted * K * POSITIVE * (1.0 + np.log(largest) - np.log(POSITIVE))

    def read(solution: Any) -> IntArray:
        return np.asarray(np.array([[solution[y] for y in row] for row in x]).argmax(axis=1), dtype=np.int64)

    return quicksum(terms), read, float(slack)
