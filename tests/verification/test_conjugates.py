"""Every family's conjugate against brute force over boxes: never below, and equal where it is exact."""

import itertools
import math

import numpy as np
import pytest

import certimap as cm
from certimap.certificate import CertificateError
from certimap.graph.blocks import merge
from certimap.graph.compile import compile_model
from certimap.model.concave import concave
from certimap.model.factors import Factor
from certimap.verification.conjugates import FAMILIES, Cut, conjugate

MODEL = cm.Model()
A, B, C = MODEL.categorical("a", 3), MODEL.categorical("b", 2), MODEL.categorical("c", 3)
BITS = MODEL.binary("bits", shape=4)
X, Y = MODEL.real("x", -2, 2), MODEL.real("y", -1, 3)
RNG = np.random.default_rng(0)


def holed(*shape: int) -> np.ndarray:
    values = RNG.normal(size=shape)
    values.flat[1] = -np.inf
    return values


def sparse_table() -> Factor:
    big = cm.Model()
    v = big.categorical("v", 40, shape=3)
    return cm.table(list(v), {tuple(RNG.integers(40, size=3).tolist()): float(RNG.normal()) for _ in range(200)})


TABLES = {
    "table": cm.table([A, B], holed(3, 2)),
    "table3": cm.table([A, B, C], holed(3, 2, 3)),
    "potts": cm.potts(A, C, 1.3),
    "repulsive": cm.potts(A, C, -0.7),
    "parity": cm.parity(list(BITS), odd=True),
    "even": cm.parity(list(BITS), odd=False),
    "merged": merge([cm.table([A, B], holed(3, 2)), cm.potts(A, C, -0.4)], []),
    "hidden": merge([cm.table([A, B], holed(3, 2)), cm.table([B, C], holed(2, 3))], [B]),
}


def points(factor: Factor, lower: np.ndarray, upper: np.ndarray) -> list[np.ndarray]:
    """All 0/1 points in the box that code one state per variable."""
    variables = factor.variables()
    found = []
    for states in itertools.product(*(v.states for v in variables)):
        values = dict(zip((v.name for v in variables), states, strict=True))
        y = np.array([a.at(values[a.variable.name]) for a in factor.atoms])
        if (y >= lower).all() and (y <= upper).all():
            found.append(y)
    return found


@pytest.mark.parametrize("feasibility", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_exact(name: str, feasibility: bool) -> None:
    factor, rng = TABLES[name], np.random.default_rng(3)
    for _ in range(40):
        n = len(factor.atoms)
        fixed = rng.random(n) < 0.25
        value = (rng.random(n) < 0.3).astype(float)
        lower, upper = np.where(fixed, value, 0.0), np.where(fixed, value, 1.0)
        u = rng.normal(size=n)
        values = [(factor.value(y), y) for y in points(factor, lower, upper)]
        best = max((-u @ y + (0.0 if feasibility else t) for t, y in values if t > -np.inf), default=-math.inf)
        h = conjugate(factor, Cut(u, lower, upper, feasibility))
        assert h == pytest.approx(best, abs=1e-13) if math.isfinite(best) else h == -math.inf
        assert h >= best


def test_a_large_penalty_does_not_blur_the_other_entries() -> None:
    values = np.array([[0.1, -1e12], [0.7, 0.3], [-1e12, 0.2]])
    free = Cut(np.zeros(5), np.zeros(5), np.ones(5))
    assert 0.7 <= conjugate(cm.table([A, B], values), free) <= 0.7 + 1e-14


def test_a_sparse_table_is_exact() -> None:
    factor, rng = sparse_table(), np.random.default_rng(4)
    assert factor.kind == "sparse_table"
    n = len(factor.atoms)
    for _ in range(10):
        u, upper = rng.normal(size=n), (rng.random(n) < 0.8).astype(float)
        best = -math.inf
        for row, value in zip(factor.arrays()["positions"], factor.arrays()["log_values"], strict=True):
            at = row + np.array([0, 40, 80])
            if upper[at].all():
                best = max(best, float(value) - math.fsum(u[at].tolist()))
        h = conjugate(factor, Cut(u, np.zeros(n), upper))
        assert best <= h <= best + 1e-13


RIDGES = {
    "gaussian": cm.ridge(2.0 * X - Y, cm.gaussian(0.5)),
    "student": cm.ridge(X + 0.3 * Y + 0.1, cm.student_t(0.2, 0.4)),
    "one": cm.ridge(0.7 * X, cm.polynomial([0, 0.3, 2, 0, -1])),
    "sum": merge([cm.ridge(X - Y, cm.laplace(0.1)), cm.ridge(X - Y + 1.0, cm.polynomial([0, 0, 0.3]))], []),
    "gated": cm.gated(BITS[0], X - 0.5 * Y, cm.gaussian(0.5)),
    "gated student": cm.gated(A.is_(1), X, cm.student_t(0.5, 0.2)),
}


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("name", RIDGES)
def test_ridges_against_sampling(name: str, parallel: bool) -> None:
    """Exact for slopes along the direction (which is what solvers make), valid for all others."""
    factor, rng = RIDGES[name], np.random.default_rng(5)
    gates = len(factor.atoms) - len(factor.coefficients)
    for _ in range(8):
        ends = np.sort(rng.uniform(-2, 2, size=(2, len(factor.atoms))), axis=0)
        ends[:, :gates] = [[0.0], [1.0]]
        u = rng.normal(size=len(factor.atoms))
        if parallel:
            u[gates:] = rng.normal() * factor.coefficients
        corners = np.array(list(itertools.product(*ends.T)))
        inside = rng.uniform(*ends, size=(1000, len(factor.atoms)))
        along = corners[0] + np.linspace(0, 1, 1000)[:, None] * (corners[-1] - corners[0])
        sample = np.concatenate([corners, inside, along])
        sample[:, :gates] = np.round(sample[:, :gates])
        best = max(factor.value(y) - float(u @ y) for y in sample)
        h = conjugate(factor, Cut(u, *ends))
        assert h >= best - 1e-14 * max(1.0, abs(best))
        if parallel:
            assert h <= best + 0.2 * max(1.0, abs(best))  # the sample is coarse in several dimensions
        feasible = conjugate(factor, Cut(u, *ends, feasibility=True))
        assert feasible == pytest.approx(-np.minimum(u * ends[0], u * ends[1]).sum(), abs=1e-13)


def test_a_gate_that_is_shut_leaves_the_linear_part() -> None:
    factor = RIDGES["gated"]
    lower, upper = np.array([0.0, -1.0, -1.0]), np.array([0.0, 1.0, 1.0])
    assert conjugate(factor, Cut(np.array([9.0, 1.0, 2.0]), lower, upper)) == pytest.approx(3.0, abs=1e-14)


def matrix_model() -> cm.Model:
    model = cm.Model()
    model.positive_definite("S", 3, 0.5, 2.0)
    return model


def test_matrices_against_sampling() -> None:
    graph = compile_model(matrix_model())
    (factor,) = graph.factors
    rng = np.random.default_rng(6)
    basis = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(300)]
    sample = [(q * rng.uniform(0.5, 2.0, 3)) @ q.T for q in basis]
    sample += [(q * rng.choice([0.5, 2.0], 3)) @ q.T for q in basis]
    for _ in range(10):
        u = rng.normal(size=6)
        best = max(float(-u @ m[np.tril_indices(3)]) for m in sample)
        h = conjugate(factor, Cut(u, graph.lower, graph.upper))
        assert best <= h <= best + 0.5 * max(1.0, abs(best))
    v = rng.normal(size=3)  # v'Xv >= 0.5 |v|^2: the cut that eigenvectors give
    u = (np.outer(v, v) * (2.0 - np.eye(3)))[np.tril_indices(3)]
    assert conjugate(factor, Cut(u, graph.lower, graph.upper)) == pytest.approx(-0.5 * v @ v, rel=1e-12)
    assert conjugate(factor, Cut(-u, graph.lower, graph.upper)) == pytest.approx(2.0 * v @ v, rel=1e-12)


class Wave:
    """sin(3 x) - x^2 with a Lipschitz bound."""

    def value(self, x: np.ndarray) -> float:
        return math.sin(3.0 * x[0]) - float(x[0]) ** 2

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        return self.value(0.5 * (lower + upper)) + 3.5 * float(upper[0] - lower[0])


def test_a_black_box_is_bounded_by_its_oracle() -> None:
    factor = cm.black_box([X], Wave())
    h = conjugate(factor, Cut(np.array([0.5]), np.array([-1.0]), np.array([1.0])))
    assert h == pytest.approx(7.0 + 0.5, abs=1e-12)
    broken = cm.black_box([X], Wave())
    broken.oracle.upper = lambda lower, upper: math.nan  # type: ignore[method-assign]
    with pytest.raises(CertificateError, match="not a number"):
        conjugate(broken, Cut(np.zeros(1), np.array([-1.0]), np.array([1.0])))


def test_a_concave_expression_is_bounded_by_its_tangent() -> None:
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is an optional extra")
    v = cvxpy.Variable(2)
    model = cm.Model()
    w = model.real("w", -1, 2, shape=2)
    factor = concave(cvxpy.sqrt(v[0] + 1.5) - cvxpy.square(v[0] - v[1]), {v: w})
    rng = np.random.default_rng(7)
    lower, upper = np.full(2, -1.0), np.full(2, 2.0)
    sample = rng.uniform(lower, upper, size=(500, 2))
    for _ in range(5):
        x = rng.uniform(lower, upper)
        u = factor.gradient(x)
        best = max(factor.value(y) - float(u @ y) for y in [*sample, x])
        exact = conjugate(factor, Cut(u, lower, upper, witness=x))
        assert best <= exact <= best + 1e-7  # x attains the maximum
        for cut in (Cut(u, lower, upper), Cut(u + 0.1, lower, upper, witness=x), Cut(u, lower, upper, witness=x + 5.0)):
            weaker = max(factor.value(y) - float(cut.u @ y) for y in [*sample, x])
            assert conjugate(factor, cut) >= weaker - 1e-12
    assert conjugate(factor, Cut(np.ones(2), lower, upper, feasibility=True)) == pytest.approx(2.0, abs=1e-13)


def test_empty_boxes_and_unknown_families() -> None:
    factor = TABLES["table"]
    assert conjugate(factor, Cut(np.zeros(5), np.ones(5), np.zeros(5))) == -math.inf

    class Unheard(type(factor)):  # type: ignore[misc]
        kind = "unheard"

    with pytest.raises(CertificateError, match="'unheard'"):
        conjugate(Unheard(factor.scope, factor.log_values), Cut(np.zeros(5), np.zeros(5), np.ones(5)))
    assert "unheard" not in FAMILIES
