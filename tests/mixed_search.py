"""The optimum of a small mixed model: every joint state of its discrete part, many local searches in its reals.

Laplace terms enter by their epigraph, so that the objective of the local search is smooth.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog, minimize
from tests.helpers import joint_states

from certimap.model.domains import Categorical, Integer, Simplex
from certimap.model.factors import Gated, Ridge

DERIVATIVES = {
    "gaussian": lambda s, p: -(s - p[0]) / p[1],
    "logistic": lambda s, p: p[0] * 0.5 * (1.0 - math.tanh(0.5 * p[0] * s)),
    "student_t": lambda s, p: -(p[2] + 1.0) * (s - p[0]) / (p[2] * p[1] ** 2 + (s - p[0]) ** 2),
    "polynomial": lambda s, p: sum(k * c * s ** (k - 1) for k, c in enumerate(p) if k),
}
INWARDS = 1e-9  # share of the way to the middle that makes an answer of the local search strictly feasible


def mixed_map(model, starts=10, seed=0):
    """The best value found, -inf if there is no feasible point. It is attained, hence a true lower bound."""
    rng = np.random.default_rng(seed)
    continuous = [v for v in model.variables.values() if not isinstance(v.domain, Categorical | Integer)]
    atoms = [a for v in continuous for a in v.coordinates()]
    return max(_continuation(model, s, atoms, rng, starts) for s in joint_states(model))


def _continuation(model, states, atoms, rng, starts):
    if any(f.value_at(states) == -math.inf for f in model.factors if f.kind == "table"):
        return -math.inf
    index = {a: k for k, a in enumerate(atoms)}

    def split(terms):
        """Coefficients of the continuous atoms, and the constant that the discrete ones add up to."""
        w, constant = np.zeros(len(index)), 0.0
        for atom, c in dict(terms).items():
            if atom in index:
                w[index[atom]] += c
            else:
                constant += c * atom.at(states[atom.variable.name])
        return w, constant

    smooth, corners = _terms(model, states, split)
    n = len(atoms) + len(corners)
    cost = np.concatenate([split(model.linear.terms)[0], np.ones(len(corners))])
    A, b = _inequalities(model, split, corners, n)
    E, e = _simplexes(model, index, n)
    bounds = [a.bounds() for a in atoms] + [(-1e3, 1e3)] * len(corners)
    equalities = {"A_eq": E, "b_eq": e} if len(e) else {}
    vertices = []
    for _ in range(2 * n + 2):
        found = linprog(rng.normal(size=n), A_ub=A, b_ub=b, bounds=bounds, **equalities)
        if found.status != 0:
            return -math.inf
        vertices.append(found.x)
    middle = np.mean(vertices, axis=0)

    def loss(x):
        y = x[: len(atoms)]
        return -float(cost @ x) - sum(g(float(w @ y) + c) for w, c, g in smooth)

    def gradient(x):
        out = -cost.copy()
        for w, c, g in smooth:
            out[: len(atoms)] -= w * DERIVATIVES[g.kind](float(w @ x[: len(atoms)]) + c, g.parameters)
        return out

    rows = [{"type": "ineq", "fun": lambda x: b - A @ x, "jac": lambda x: -A}] if len(b) else []
    rows += [{"type": "eq", "fun": lambda x: E @ x - e, "jac": lambda x: E}] if len(e) else []
    best = -math.inf
    for _ in range(starts):
        start = rng.dirichlet(np.ones(len(vertices))) @ np.array(vertices)
        found = minimize(
            loss, start, jac=gradient, method="SLSQP", bounds=bounds, constraints=rows, options={"ftol": 1e-14}
        )
        x = np.clip(found.x, *np.array(bounds).T)
        best = max(best, model.value(_assignment(model, states, (1 - INWARDS) * x + INWARDS * middle, index)))
    return best


def _terms(model, states, split):
    """Active ridges: smooth ones as (direction, offset, function), Laplace ones as (direction, offset)."""
    smooth, corners = [], []
    for f in model.factors:
        if isinstance(f, Ridge | Gated) and not (isinstance(f, Gated) and f.gate.at(states[f.gate.variable.name]) == 0):
            w, constant = split(f.expression.terms)
            constant += f.expression.constant
            if f.function.kind == "laplace":
                location, scale = f.function.parameters
                corners.append((w / scale, (constant - location) / scale))
            else:
                smooth.append((w, constant, f.function))
    return smooth, corners


def _inequalities(model, split, corners, n):
    A, b = [], []
    for constraint in model.constraints.values():
        for row in constraint.rows:
            w, constant = split(row.terms)
            for sign, side in ((1.0, row.upper), (-1.0, -row.lower)):
                if math.isfinite(side):
                    A.append(np.concatenate([sign * w, np.zeros(n - len(w))]))
                    b.append(side - sign * constant)
    for k, (w, constant) in enumerate(corners):
        for sign in (1.0, -1.0):  # t_k <= -|w.x + constant|
            A.append(np.concatenate([sign * w, np.eye(len(corners))[k]]))
            b.append(-sign * constant)
    return np.array(A).reshape(-1, n), np.array(b)


def _simplexes(model, index, n):
    E = [
        [1.0 if k < len(index) and list(index)[k].variable is v else 0.0 for k in range(n)]
        for v in model.variables.values()
        if isinstance(v.domain, Simplex)
    ]
    return np.array(E).reshape(-1, n), np.ones(len(E))


def _assignment(model, states, x, index):
    values = dict(states)
    for v in dict.fromkeys(a.variable for a in index):
        parts = np.array([x[k] for a, k in index.items() if a.variable is v])
        if isinstance(v.domain, Simplex):
            free = np.maximum(parts - v.domain.lower, 0.0)
            values[v.name] = v.domain.lower + (1.0 - v.domain.size * v.domain.lower) * free / free.sum()
        else:
            values[v.name] = float(np.clip(parts[0], v.domain.lower, v.domain.upper))
    return model.pack(values)
