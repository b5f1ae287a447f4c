"""Peers on the same instances, one thread each: toulbar2, HiGHS and SCIP."""

from __future__ import annotations

import time
from dataclasses import dataclass

import highspy
import numpy as np
import pyscipopt
import pytoulbar2

from benchmarks.instances import Grid, SparseLogistic, SwitchingRegression
from certimap.graph.tables import TableModel

DIGITS = 6  # decimals of toulbar2's integer costs


@dataclass(frozen=True)
class Answer:
    """A peer's best value, its bound (None if it gives none) and its seconds; `proved`: it claims optimality."""

    name: str
    value: float | None
    bound: float | None
    seconds: float
    proved: bool

    def __str__(self) -> str:
        value = "no point" if self.value is None else f"{self.value:.4f}"
        bound = "" if self.proved or self.bound is None else f" bound {self.bound:.4f}"
        return f"{self.name} {value}{bound} {self.seconds:.2f} s{'' if self.proved else ' (limit)'}"


def toulbar2(grid: Grid, limit: int) -> Answer:
    """Costs are the tables' distances to their maxima."""
    started = time.perf_counter()
    problem = pytoulbar2.CFN(1e6, resolution=DIGITS, verbose=-1)
    for i in range(len(grid.unary)):
        problem.AddVariable(f"x{i}", range(grid.states))
    best = float(grid.unary.max(axis=1).sum() + sum(t.max() for *_, t in grid.pairs))
    for i, u in enumerate(grid.unary):
        problem.AddFunction([i], (u.max() - u).tolist())
    for a, b, t in grid.pairs:
        problem.AddFunction([a, b], (t.max() - t).ravel().tolist())
    found = problem.Solve(timeLimit=limit)
    seconds = time.perf_counter() - started
    proved = found is not None and seconds < limit
    solution = found[0] if found is not None else None
    value = None if solution is None else grid.value(np.array(solution, dtype=np.int64))
    return Answer("toulbar2", value, best - problem.GetDDualBound(), seconds, proved)


def toulbar2_tables(tables: TableModel, limit: int) -> Answer:
    """A model of tables; what costs as much as all ranges together is excluded."""
    started = time.perf_counter()
    ranges = [float(np.ptp(t.log_values[np.isfinite(t.log_values)])) for t in tables.terms]
    top = sum(ranges) + 1.0
    problem = pytoulbar2.CFN(top, resolution=DIGITS, verbose=-1)
    for v in tables.variables:
        problem.AddVariable(v.name, range(len(v.states)))
    best = tables.constant
    for t in tables.terms:
        most = float(t.log_values.max())
        best += most
        problem.AddFunction(list(t.scope), np.minimum(most - t.log_values, top).ravel().tolist())
    found = problem.Solve(timeLimit=limit)
    seconds = time.perf_counter() - started
    value = None
    if found is not None:
        value = tables.constant + sum(float(t.log_values[tuple(found[0][i] for i in t.scope)]) for t in tables.terms)
    return Answer("toulbar2", value, best - problem.GetDDualBound(), seconds, found is not None and seconds < limit)


def highs(grid: Grid, limit: float, *, relaxed: bool = False) -> Answer:
    """The local-polytope integer program, or its relaxation (then value and bound are the relaxation's)."""
    started = time.perf_counter()
    k, n, edges = grid.states, len(grid.unary), len(grid.pairs)
    columns = n * k + edges * k * k
    entries: list[tuple[int, int, float]] = [(i, i * k + s, 1.0) for i in range(n) for s in range(k)]
    row = n
    for e, (a, b, _) in enumerate(grid.pairs):
        first = n * k + e * k * k
        for s in range(k):
            entries += [(row, first + s * k + r, 1.0) for r in range(k)] + [(row, a * k + s, -1.0)]
            entries += [(row + k, first + r * k + s, 1.0) for r in range(k)] + [(row + k, b * k + s, -1.0)]
            row += 1
        row += k
    index = np.array([(r, c) for r, c, _ in entries])
    values = np.array([v for *_, v in entries])
    order = np.lexsort((index[:, 1], index[:, 0]))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, row
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([grid.unary.ravel(), *(t.ravel() for *_, t in grid.pairs)])
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.ones(columns)
    sides = np.concatenate([np.ones(n), np.zeros(row - n)])
    lp.row_lower_, lp.row_upper_ = sides, sides
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(index[:, 0], minlength=row))])
    lp.a_matrix_.index_, lp.a_matrix_.value_ = index[order, 1], values[order]
    if not relaxed:
        whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [whole] * (n * k) + [free] * (columns - n * k)
    solver = highspy.Highs()
    solver.silent()
    for option, value in (("threads", 1), ("time_limit", float(limit)), ("mip_rel_gap", 1e-6)):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.run()
    info = solver.getInfo()
    proved = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    known = proved or info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    value = info.objective_function_value if known else None
    bound = value if relaxed else info.mip_dual_bound
    return Answer("HiGHS LP" if relaxed else "HiGHS", value, bound, time.perf_counter() - started, proved)


def scip_sparse_logistic(instance: SparseLogistic, limit: float) -> Answer:
    started = time.perf_counter()
    m = pyscipopt.Model()
    n = instance.x.shape[1]
    w = [m.addVar(lb=-instance.reach, ub=instance.reach) for _ in range(n)]
    z = [m.addVar(vtype="B") for _ in range(n)]
    for v, b in zip(w, z, strict=True):
        m.addCons(v <= instance.reach * b)
        m.addCons(v >= -instance.reach * b)
    m.addCons(pyscipopt.quicksum(z) <= instance.nonzero)
    terms = []
    for row, label in zip(instance.x, instance.y, strict=True):
        reach = instance.reach * float(np.abs(row).sum())
        s, t = m.addVar(lb=-reach, ub=reach), m.addVar(lb=-reach - 1.0, ub=0.0)
        m.addCons(s == int(label) * pyscipopt.quicksum(float(c) * v for c, v in zip(row, w, strict=True)))
        m.addCons(t <= -pyscipopt.log(1.0 + pyscipopt.exp(-s)))
        terms.append(t)
    prior = m.addVar(lb=0.0)
    m.addCons(pyscipopt.quicksum(v * v for v in w) <= 2.0 * instance.variance * prior)
    return _scip(m, pyscipopt.quicksum(terms) - prior, limit, started)


def scip_switching_regression(instance: SwitchingRegression, limit: float) -> Answer:
    """The residual of each datum by big-M from the line it is assigned to."""
    started = time.perf_counter()
    m = pyscipopt.Model()
    a = [m.addVar(lb=-instance.reach, ub=instance.reach) for _ in range(2)]
    b = [m.addVar(lb=-instance.reach, ub=instance.reach) for _ in range(2)]
    residuals = []
    for i, (s, t) in enumerate(zip(instance.x.tolist(), instance.y.tolist(), strict=True)):
        z, most = m.addVar(vtype="B", ub=0.0 if i == 0 else 1.0), instance.reach * (abs(s) + 1.0) + abs(t)
        e = m.addVar(lb=0.0, ub=most)
        for k, off in ((0, z), (1, 1 - z)):
            distance = s * a[k] + b[k] - t
            m.addCons(e >= distance - most * off)
            m.addCons(e >= -distance - most * off)
        residuals.append(e)
    loss = m.addVar(lb=0.0)
    noise = pyscipopt.quicksum(e * e for e in residuals) * (0.5 / instance.variance)
    prior = pyscipopt.quicksum(v * v for v in (*a, *b)) * (0.5 / instance.prior)
    m.addCons(noise + prior <= loss)
    return _scip(m, -loss, limit, started)


def _scip(m: pyscipopt.Model, objective: pyscipopt.Expr, limit: float, started: float) -> Answer:
    m.hideOutput()
    m.setParam("limits/time", limit)
    m.setParam("limits/gap", 1e-6)
    m.setParam("parallel/maxnthreads", 1)
    m.setObjective(objective, "maximize")
    m.optimize()
    proved = m.getStatus() in ("optimal", "gaplimit")
    value = m.getObjVal() if m.getNSols() else None
    return Answer("SCIP", value, m.getDualbound(), time.perf_counter() - started, proved)
