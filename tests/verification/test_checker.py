"""Certificates of the engine, one model per factor family: solved, saved, verified, and refused when tampered with."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from tests.helpers import assert_solved, enumerate_map

import certimap as cm
from certimap.certificate import CertificateError
from certimap.results import Status
from certimap.solver import solve
from certimap.verification.checker import PROOFS, verify


def tables() -> cm.Model:
    rng = np.random.default_rng(0)
    model = cm.Model()
    x = model.categorical("x", 3, shape=(3, 3))
    model.add([cm.table([v], rng.normal(size=3)) for v in x.ravel()])
    model.add([cm.table([x[i, j], x[i + 1, j]], rng.normal(size=(3, 3))) for i in range(2) for j in range(3)])
    model.add([cm.table([x[i, j], x[i, j + 1]], rng.normal(size=(3, 3))) for i in range(3) for j in range(2)])
    return model


def potts() -> cm.Model:
    rng = np.random.default_rng(1)
    model = cm.Model()
    x = model.categorical("x", 3, shape=6)
    model.add([cm.potts(x[i], x[j], float(rng.normal())) for i in range(6) for j in range(i)])
    model.add([cm.table([v], rng.normal(size=3)) for v in x])
    model.add(cm.soft(cm.must_link(x[0], x[1]), 1.5), cm.soft(cm.at_most(2, x, value=1), 0.7))
    model.constrain(cm.cannot_link(x[0], x[2]), cm.at_least(2, x, value=0))
    return model


def private() -> cm.Model:
    rng = np.random.default_rng(2)
    model = cm.Model()
    x = model.categorical("x", 3, shape=4)
    ring = [cm.table([x[i], x[(i + 1) % 4]], rng.normal(size=(3, 3))) for i in range(4)]
    model.add(cm.Block(ring[:2], private=[x[1]]), ring[2:])
    return model


def parities() -> cm.Model:
    rng = np.random.default_rng(3)
    model = cm.Model()
    x = model.binary("x", shape=8)
    for k in range(5):
        model.add(cm.parity([x[i] for i in rng.choice(8, 3, replace=False)], odd=bool(k % 2)))
    model.add(cm.linear([(v, float(rng.normal())) for v in x]))
    return model


def integers() -> cm.Model:
    rng = np.random.default_rng(4)
    model = cm.Model()
    n = model.integer("n", 0, 6, shape=2)
    model.add(cm.ridge(n[0] - n[1], cm.polynomial([0, 1, -0.5])), cm.ridge(0.3 * n[0], cm.poisson(2)))
    model.add(cm.ridge(n[1], cm.logistic(1)), cm.table([n[0]], rng.normal(size=7)))
    return model


def gates() -> cm.Model:
    rng = np.random.default_rng(5)
    model = cm.Model()
    w, z = model.real("w", -2, 2), model.binary("z", shape=3)
    for gate in z:
        model.add(cm.gated(gate, w, cm.gaussian(float(rng.normal()), 0.5)))
        model.add(cm.gated(gate, w + 0.5, cm.student_t(float(rng.normal()), 0.5)))
    model.add(cm.ridge(w, cm.laplace(0.3)), cm.ridge(w, cm.polynomial([0, 0.3, 2, 0, -1])))
    model.constrain(cm.at_least(2, z))
    return model


def simplex() -> cm.Model:
    model = cm.Model()
    p, z = model.simplex("p", 3, 0.01), model.categorical("z", 3, shape=3)
    model.add([cm.gated(v.is_(k), p[k], cm.log(1.0)) for v in z for k in range(3)])
    model.add([cm.ridge(p[k], cm.log(0.5)) for k in range(3)])
    return model


def matrices() -> cm.Model:
    model = cm.Model()
    s = model.positive_definite("S", 2, 0.2, 3.0)
    model.add(cm.ridge(s[0, 0], cm.log(1.0)), cm.ridge(s[1, 1] + s[0, 1], cm.gaussian(1.0)), 2.0 * s[0, 1])
    return model


def opposed_ridges() -> cm.Model:
    """x^2 and -2 x^2: one block closes the gap at the root."""
    model = cm.Model()
    x = model.real("x", -1, 1)
    model.add(cm.Block([cm.ridge(x, cm.polynomial([0, 0, 1.0])), cm.ridge(x, cm.polynomial([0, 0, -2.0]))]))
    return model


class Wave:
    """sin(3 x) - x^2 on [-2, 2]: its slope is at most 7."""

    def value(self, x: np.ndarray) -> float:
        return math.sin(3.0 * x[0]) - float(x[0]) ** 2

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        return self.value(0.5 * (lower + upper)) + 3.5 * float(upper[0] - lower[0])


def black_box() -> cm.Model:
    model = cm.Model()
    model.add(cm.black_box([model.real("x", -2, 2)], Wave()))
    return model


def odd_cycle() -> cm.Model:
    """Infeasible by its constraints, one of which is needless."""
    model = cm.Model()
    x = model.categorical("x", 2, shape=4)
    model.constrain(cm.cannot_link(x[0], x[1]), cm.cannot_link(x[1], x[2]), cm.cannot_link(x[0], x[2]))
    model.constrain(cm.must_link(x[2], x[3]))
    return model


def odd_parities() -> cm.Model:
    """Infeasible by its factors: only feasibility cuts can prove it."""
    model = cm.Model()
    x = model.binary("x", shape=4)
    model.add([cm.parity([x[i], x[j]], odd=True) for i, j in ((0, 1), (1, 2), (0, 2))])
    model.add(cm.parity([x[0], x[3]]))
    return model


GAP = {black_box: 1e-2, matrices: 1e-4, gates: 1e-4}
SOLVED = [tables, potts, private, parities, integers, gates, opposed_ridges, black_box]
UNCOUNTED = [simplex, matrices]
INFEASIBLE = [odd_cycle, odd_parities]


@pytest.mark.parametrize("build", SOLVED, ids=lambda f: f.__name__)
def test_solved_and_verified(build: Callable[[], cm.Model]) -> None:
    model = build()
    optimum, _ = enumerate_map(model)
    result = solve(model, gap=GAP.get(build, 1e-6))
    report = assert_solved(model, result, optimum=optimum, status=Status.OPTIMAL)
    assert report is not None
    assert report.upper_bound >= optimum - 1e-9
    assert bool(report.trusted) == (build is black_box)


@pytest.mark.parametrize("build", UNCOUNTED, ids=lambda f: f.__name__)
def test_solved_and_verified_without_brute_force(build: Callable[[], cm.Model]) -> None:
    model = build()
    assert_solved(model, solve(model, gap=GAP.get(build, 1e-6)), status=Status.OPTIMAL)


@pytest.mark.parametrize("build", INFEASIBLE, ids=lambda f: f.__name__)
def test_infeasible_and_verified(build: Callable[[], cm.Model]) -> None:
    model = build()
    result = solve(model)
    report = assert_solved(model, result, optimum=enumerate_map(model)[0], status=Status.INFEASIBLE)
    assert report is not None
    assert report.upper_bound == -math.inf
    assert len(result.conflict) == 3


@pytest.mark.parametrize("build", [tables, private, gates, odd_cycle], ids=lambda f: f.__name__)
def test_the_engines_files_fit_the_schema(build: Callable[[], cm.Model], tmp_path: Path) -> None:
    schema = json.loads(resources.files("certimap").joinpath("certificate_schema.json").read_text(encoding="utf-8"))
    certificate = solve(build(), gap=1e-2).certificate
    assert certificate is not None
    certificate.save(tmp_path / "c.json")
    jsonschema.validate(json.loads((tmp_path / "c.json").read_text(encoding="utf-8")), schema)


def test_a_stopped_search_has_a_valid_proof() -> None:
    model = gates()
    result = solve(model, max_nodes=3)
    assert_solved(model, result, optimum=enumerate_map(model)[0], status=Status.BOUNDED)


def test_infeasibility_is_not_believed_of_a_feasible_model() -> None:
    """The proof of an infeasible model, offered for the same model without one of the conflicting constraints."""
    certificate = solve(odd_cycle()).certificate
    assert certificate is not None
    model = cm.Model()
    x = model.categorical("x", 2, shape=4)
    model.constrain(cm.cannot_link(x[0], x[1]), cm.cannot_link(x[1], x[2]), cm.must_link(x[2], x[3]))
    with pytest.raises(CertificateError):
        verify(replace(certificate, model=model.fingerprint()), model)


@pytest.mark.parametrize("build", [tables, gates, parities], ids=lambda f: f.__name__)
def test_lower_claims_than_the_proof_are_refused(build: Callable[[], cm.Model]) -> None:
    model = build()
    certificate = solve(model).certificate
    assert certificate is not None
    proved = verify(certificate, model).upper_bound
    lower = proved - 1e-7 * max(1.0, abs(proved))
    with pytest.raises(CertificateError):
        verify(replace(certificate, upper_bound=lower), model)


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(CertificateError, match="no certificate"):
        verify(None, tables())
    certificate = solve(tables()).certificate
    assert certificate is not None
    with pytest.raises(CertificateError, match=r"alchemy.*known are.*branch-and-cut"):
        verify(replace(certificate, algorithm="alchemy"), tables())
    assert "alchemy" not in PROOFS
