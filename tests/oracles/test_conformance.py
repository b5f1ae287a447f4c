"""Every registered factor family against the closed-form values of its factors at sampled or enumerated points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import certimap.oracles  # noqa: F401  # registers the families
from certimap import (
    Block,
    Model,
    black_box,
    concave,
    gated,
    gaussian,
    laplace,
    log,
    logistic,
    parity,
    poisson,
    polynomial,
    potts,
    ridge,
    student_t,
    table,
)
from certimap.graph.compile import compile_model
from certimap.graph.graph import FactorGraph
from certimap.model.domains import Categorical, Integer, Real
from certimap.model.factors import SparseTable
from certimap.model.univariate import Univariate
from certimap.oracles.protocol import Box, Cuts, Oracle, oracles_for, registered_kinds

Rng = np.random.Generator
SEEDS = 5
DEFAULT_SEEDS = 2  # the others belong to the slow tests
MAX_ENUMERATED = 300
ROUNDING = 1e-11  # of the test's own arithmetic, relative to the numbers it adds

# Families that only promise valid conjugates, and why.
INEXACT_CONJUGATE = {
    "black_box": "the user's oracle bounds boxes; it knows no maximiser",
}


def _tables(rng: Rng) -> Model:
    m = Model()
    x = m.categorical("x", 3, shape=4)
    for a, b in itertools.pairwise(x):
        values = rng.normal(size=(3, 3))
        values[rng.random((3, 3)) < 0.2] = -np.inf
        values[0, 0] = 0.0
        m.add(table([a, b], values))
    m.add(table(list(x[:3]), np.where(rng.random((3, 3, 3)) < 0.3, -np.inf, rng.normal(size=(3, 3, 3)))))
    return m


def _sparse_tables(rng: Rng) -> Model:
    m = Model()
    x = m.categorical("x", 17, shape=3)
    states = {tuple(map(int, rng.integers(0, 17, size=3))): float(rng.normal()) for _ in range(40)}
    m.add(table(list(x), states))
    return m


def _potts(rng: Rng) -> Model:
    m = Model()
    x = m.categorical("x", 4, shape=4)
    for a, b in itertools.combinations(x, 2):
        m.add(potts(a, b, float(rng.normal())))
    return m


def _parity(rng: Rng) -> Model:
    m = Model()
    z = m.binary("z", shape=5)
    for size in (2, 4, 5):
        m.add(parity(rng.permutation(z)[:size], odd=bool(rng.integers(2))))
    return m


def _functions(rng: Rng) -> list[Univariate]:
    return [
        gaussian(rng.normal(), rng.uniform(0.2, 3.0)),
        laplace(rng.normal(), rng.uniform(0.2, 3.0)),
        logistic(int(rng.choice([-1, 1]))),
        poisson(rng.uniform(0.0, 4.0)),
        student_t(rng.normal(), rng.uniform(0.1, 1.0), rng.uniform(0.5, 6.0)),
        polynomial(rng.normal(size=5)),
    ]


def _mixed_columns(m: Model, rng: Rng) -> Callable[[], Any]:
    """Random linear expressions over real, integer and one-hot columns."""
    w, n, c = m.real("w", -2.0, 1.5, shape=2), m.integer("n", -2, 3), m.categorical("c", 3)

    def expression() -> Any:
        a = rng.normal(size=4)
        return a[0] * w[0] + a[1] * w[1] + 0.5 * a[2] * n + a[3] * c.is_(1) + rng.normal()

    return expression


def _ridges(rng: Rng) -> Model:
    m = Model()
    expression = _mixed_columns(m, rng)
    p = m.simplex("p", 3, lower=0.01)
    for _ in range(2):
        m.add(*(ridge(expression(), g) for g in _functions(rng)))
        m.add(ridge(p[0] + 0.5 * p[1], log(rng.uniform(0.0, 2.0))))
    return m


def _ridge_sums(rng: Rng) -> Model:
    m = Model()
    expression = _mixed_columns(m, rng)
    for kinds in ([0, 1, 4], [4, 4], [5, 0], [2, 3], [1, 5, 5]):
        for _ in range(2):
            direction = expression()
            members = [ridge(direction + rng.normal(), _functions(rng)[k]) for k in kinds]
            m.add(Block(members))
    return m


def _gated(rng: Rng) -> Model:
    m = Model()
    expression = _mixed_columns(m, rng)
    z, k = m.binary("z", shape=3), m.categorical("k", 3)
    p = m.simplex("p", 3, lower=0.01)
    for g in _functions(rng):
        m.add(gated(z[rng.integers(3)], expression(), g), gated(k.is_(int(rng.integers(3))), expression(), g))
    m.add(gated(z[0], p[0] + 2.0 * p[2], log(1.5)))
    return m


def _matrices(rng: Rng) -> Model:
    m = Model()
    m.positive_definite("small", 2, 0.5, 3.0, shape=2)
    m.positive_definite("large", 3, 0.1, 20.0)
    return m


def _concave(rng: Rng) -> Model:
    cp = pytest.importorskip("cvxpy")
    m = Model()
    w, p, b = m.real("w", -1.0, 2.0, shape=2), m.simplex("p", 3, lower=0.05), m.binary("b")
    precision = m.positive_definite("precision", 2, 0.5, 3.0)
    x, q, z, matrix = cp.Variable(2), cp.Variable(3), cp.Variable(), cp.Variable((2, 2), symmetric=True)
    a = rng.normal(size=2)
    m.add(
        concave(-cp.sum_squares(x - a) - cp.abs(x[0] - z), {x: w, z: b}),
        concave(cp.sum(cp.entr(q)) - cp.norm(q), {q: p}),
        concave(cp.log_det(matrix) - cp.trace(matrix) - a @ matrix @ a, {matrix: precision}),
        concave(-cp.log_sum_exp(cp.hstack([x, z])), {x: w, z: b}),
    )
    return m


class Wave:
    """sin(a.x), which has slope at most |a_j| in x_j."""

    def __init__(self, a: np.ndarray) -> None:
        self.a = a

    def value(self, x: np.ndarray) -> float:
        return float(np.sin(self.a @ x))

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        middle, radius = 0.5 * (lower + upper), 0.5 * (upper - lower)
        return min(self.value(middle) + float(np.abs(self.a) @ radius), 1.0) + 1e-12


class WaveWithConjugate(Wave):
    def conjugate(self, u: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
        middle, radius = 0.5 * (lower + upper), 0.5 * (upper - lower)
        slope = np.abs(self.a) + np.abs(u)
        return self.value(middle) - float(u @ middle) + float(slope @ radius) + 1e-12


def _black_boxes(rng: Rng) -> Model:
    m = Model()
    x, n = m.real("x", -2.0, 2.0, shape=2), m.integer("n", 0, 4)
    m.add(black_box([*x, n], Wave(rng.normal(size=3))), black_box([*x, n], WaveWithConjugate(rng.normal(size=3))))
    return m


GENERATORS: dict[str, Callable[[Rng], Model]] = {
    "table": _tables,
    "sparse_table": _sparse_tables,
    "potts": _potts,
    "parity": _parity,
    "ridge": _ridges,
    "ridge_sum": _ridge_sums,
    "gated": _gated,
    "spectral": _matrices,
    "concave": _concave,
    "black_box": _black_boxes,
}


# ------------------------------------------------------------------------------------------------- points and boxes
class Case:
    """A random model, its oracles of one kind, points of the domains, a random box and points in it."""

    def __init__(self, kind: str, seed: int) -> None:
        self.seed = [seed, *kind.encode()]
        self.rng = np.random.default_rng(self.seed)
        self._truth: dict[tuple[int, int], np.ndarray] = {}
        self.model = GENERATORS[kind](self.rng)
        self.graph: FactorGraph = compile_model(self.model)
        self.oracles = [o for o in oracles_for(self.graph) if o.batch.kind == kind]
        assert self.oracles, f"the generator of {kind!r} makes no such factor"
        self.root = Box(self.graph.lower, self.graph.upper)
        everywhere = self._enumerate() or [self._draw() for _ in range(150)] + self._listed()
        self.points = np.array([self.graph.encode(values) for values in everywhere])
        chosen = self.rng.choice(len(everywhere), size=int(self.rng.integers(2, 5)))
        hull = self.points[chosen]
        self.box = Box(hull.min(axis=0), hull.max(axis=0))
        mixed = [self._mix([everywhere[i] for i in chosen]) for _ in range(100)]
        self.inside = np.array([self.graph.encode(values) for values in mixed])
        held = (self.points >= self.box.lower).all(axis=1) & (self.points <= self.box.upper).all(axis=1)
        self.inside = np.concatenate([self.inside, self.points[held]])

    def truth(self, oracle: Oracle, points: np.ndarray) -> np.ndarray:
        """(points, terms) closed-form values, remembered for the case's own arrays of points."""
        key = (self.oracles.index(oracle), id(points))
        if points is not self.inside and points is not self.points:
            return truth(oracle, points)
        if key not in self._truth:
            self._truth[key] = truth(oracle, points)
        return self._truth[key]

    def _enumerate(self) -> list[Mapping[str, Any]]:
        domains = [v.domain for v in self.model.variables.values()]
        if not all(isinstance(d, Categorical | Integer) for d in domains):
            return []
        states = [list(d.states) for d in domains if isinstance(d, Categorical | Integer)]
        if np.prod([len(s) for s in states]) > MAX_ENUMERATED:
            return []
        names = list(self.model.variables)
        return [self.model.pack(dict(zip(names, joint, strict=True))) for joint in itertools.product(*states)]

    def _listed(self) -> list[Mapping[str, Any]]:
        """States that sparse tables allow; random ones are nearly always excluded."""
        tables = [f for f in self.model.factors if isinstance(f, SparseTable)]
        return [
            self.model.pack({v.name: v.states[k] for v, k in zip(f.scope, row, strict=True)})
            for f in tables
            for row in f.positions.tolist()
        ]

    def _draw(self) -> Mapping[str, Any]:
        return self.graph.decode(self.rng.uniform(self.graph.lower, self.graph.upper))

    def _mix(self, corners: list[Mapping[str, Any]]) -> Mapping[str, Any]:
        """A point of the box that the corners span, variable by variable."""
        flat = [self.model.flatten(values) for values in corners]
        mixed = {}
        for name, variable in self.model.variables.items():
            values = [f[name] for f in flat]
            weights = self.rng.dirichlet(np.full(len(values), 0.5))
            if isinstance(variable.domain, Categorical):
                mixed[name] = values[int(self.rng.integers(len(values)))]
            elif isinstance(variable.domain, Integer):
                mixed[name] = int(self.rng.integers(min(values), max(values) + 1))
            elif isinstance(variable.domain, Real):
                mixed[name] = float(np.clip(np.dot(weights, values), min(values), max(values)))
            else:
                blend = sum(w * np.asarray(v) for w, v in zip(weights, values, strict=True))
                mixed[name] = np.clip(blend, np.min(values, axis=0), np.max(values, axis=0))
        return self.model.pack(mixed)

    def fractional(self) -> Iterator[np.ndarray]:
        """Points of the convex hull of the feasible points in the box."""
        for _ in range(6):
            some = self.inside[self.rng.choice(len(self.inside), size=3)]
            yield self.rng.dirichlet(np.ones(3)) @ some


def truth(oracle: Oracle, points: np.ndarray) -> np.ndarray:
    """(points, terms) closed-form values."""
    return np.array([[f.value(y[s]) for f, s in zip(oracle.batch.factors, oracle.scope, strict=True)] for y in points])


def assert_valid(oracle: Oracle, cuts: Cuts, case: Case) -> None:
    """theta <= u.x + h at all points of the box, and of the whole domain where the cut says so."""
    for points, which in ((case.inside, cuts.local | ~cuts.local), (case.points, ~cuts.local)):
        theta = case.truth(oracle, points)
        for k in np.flatnonzero(which):
            i = cuts.term[k]
            x = points[:, oracle.scope[i]]
            right = x @ cuts.u[k] + cuts.h[k]
            scale = 1.0 + np.abs(x) @ np.abs(cuts.u[k]) + abs(cuts.h[k])
            left = np.where(theta[:, i] > -np.inf, 0.0, -np.inf) if cuts.feasibility[k] else theta[:, i]
            worst = float((left - right - ROUNDING * scale).max())
            assert worst <= 0.0, f"cut {k} on {oracle.batch.factors[i].label()} is violated by {worst}"


def above(oracle: Oracle, box: Box) -> np.ndarray:
    """Values of t that are too high for every term."""
    upper = oracle.upper(box)
    return np.where(np.isfinite(upper), upper, 0.0) + 1.0


def height(oracle: Oracle, cuts: Cuts, y: np.ndarray, term: int) -> float:
    """The lowest optimality cut on a term at y."""
    mine = (cuts.term == term) & ~cuts.feasibility
    return float(min(cuts.u[mine] @ y[oracle.scope[term]] + cuts.h[mine], default=np.inf))


@pytest.fixture(
    params=[
        pytest.param((kind, seed), id=f"{kind}-{seed}", marks=[pytest.mark.slow] if seed >= DEFAULT_SEEDS else [])
        for kind in registered_kinds()
        for seed in range(SEEDS)
    ]
)
def case(request: pytest.FixtureRequest) -> Case:
    kind, seed = request.param
    assert kind in GENERATORS, f"no generator of random factors of kind {kind!r}: add one to GENERATORS"
    case = _build(kind, seed)
    case.rng = np.random.default_rng(case.seed)  # no test depends on those that ran before
    return case


@cache
def _build(kind: str, seed: int) -> Case:
    return Case(kind, seed)


# ------------------------------------------------------------------------------------------------------------ checks
def test_upper_bounds_the_box(case: Case) -> None:
    for oracle in case.oracles:
        for box, points in ((case.box, case.inside), (case.root, case.points)):
            upper = oracle.upper(box)
            assert upper.shape == (len(oracle.batch),)
            assert (upper < np.inf).all()
            room = ROUNDING * (1.0 + np.abs(np.where(upper > -np.inf, upper, 0.0)))
            assert (case.truth(oracle, points) <= upper + room).all()


def test_conjugate_bounds_and_is_attained(case: Case) -> None:
    for oracle in case.oracles:
        theta = case.truth(oracle, case.inside)
        for i in range(len(oracle.batch)):
            columns = oracle.scope[i]
            x = case.inside[:, columns]
            for size in (0.0, 0.3, 3.0):
                u = size * case.rng.normal(size=len(columns))
                h, best = oracle.conjugate(i, u, case.box)
                scale = 1.0 + abs(h) + np.abs(x) @ np.abs(u)
                assert (theta[:, i] - x @ u <= h + ROUNDING * scale).all()
                domain = case.root if oracle.global_cuts else case.box
                lower, upper = domain.part(columns)
                assert ((lower - 1e-9 <= best) & (best <= upper + 1e-9)).all()
                if oracle.batch.kind not in INEXACT_CONJUGATE:
                    attained = oracle.batch.factors[i].value(best) - float(best @ u)
                    assert attained >= h - 1e-6 * (1.0 + abs(h))


def test_cuts_are_valid_and_found_where_violated(case: Case) -> None:
    for oracle in case.oracles:
        top = above(oracle, case.box)
        assert_valid(oracle, oracle.proposals(case.box), case)
        for y in case.fractional():
            cuts = oracle.separate(y, top, case.box, 1e-7)
            assert cuts.u.shape == (len(cuts), oracle.scope.shape[1])
            assert set(cuts.term) == set(range(len(oracle.batch))), "every term is above its envelope"
            assert_valid(oracle, cuts, case)
            for i in range(len(oracle.batch)):
                assert not np.isfinite(h := height(oracle, cuts, y, i)) or h <= top[i] - 1e-7


def test_nothing_is_cut_below_the_envelope(case: Case) -> None:
    for oracle in case.oracles:
        for y in case.inside[:8]:
            theta = truth(oracle, y[None])[0]
            feasible = theta > -np.inf
            cuts = oracle.separate(y, np.where(feasible, theta - 1e-3, -1e6), case.box, 1e-7)
            assert not feasible[cuts.term].any()


def test_cuts_are_tight_at_whole_points(case: Case) -> None:
    for oracle in case.oracles:
        if not oracle.exact_at_integers:
            continue
        for y in case.inside[:12]:
            theta = truth(oracle, y[None])[0]
            cuts = oracle.separate(y, np.maximum(theta, -1e3) + 1.0, case.box, 1e-7)
            for i, value in enumerate(theta):
                mine = cuts.term == i
                if value == -np.inf:
                    violated = cuts.u[mine] @ y[oracle.scope[i]] + cuts.h[mine] < 0.0
                    assert (violated & cuts.feasibility[mine]).any()
                else:
                    assert height(oracle, cuts, y, i) <= value + 1e-6 * (1.0 + abs(value))


def test_values_at_feasible_points_are_the_factors(case: Case) -> None:
    for oracle in case.oracles:
        for y in case.points[:20]:
            np.testing.assert_allclose(oracle.value(y), truth(oracle, y[None])[0], rtol=1e-9, atol=1e-9)


def test_batched_equals_one_by_one(case: Case) -> None:
    y = next(case.fractional())
    for oracle in case.oracles:
        batch = oracle.batch
        top = above(oracle, case.box)
        together = oracle.separate(y, top, case.box, 1e-7)
        for i in range(len(batch)):
            data = {key: array[i : i + 1] for key, array in batch.data.items()}
            single = replace(
                batch, scope=batch.scope[i : i + 1], factors=(batch.factors[i],), data=data, blocks=batch.blocks[i:][:1]
            )
            alone = type(oracle)(single, case.graph).separate(y, top[i : i + 1], case.box, 1e-7)
            # The best cut at a point need not be unique; its height there is.
            mine = together.term == i
            x, optimality = y[batch.scope[i]], ~alone.feasibility
            heights = (together.u @ x + together.h)[mine]
            assert (alone.feasibility == together.feasibility[mine]).all()
            np.testing.assert_allclose((alone.u @ x + alone.h)[optimality], heights[optimality], rtol=1e-6, atol=1e-8)
