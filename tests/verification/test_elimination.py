"""Proofs by elimination: whatever the order, and never a claim below the maximum."""

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers import enumerate_map
from tests.models import discrete_model

from certimap import CertificateError, Model, gaussian, ridge, solve, verify
from certimap.verification.checker import PROOFS


def proved(seed=1):
    model = discrete_model(np.random.default_rng(seed))
    return model, solve(model, algorithm="elimination").certificate


def with_order(certificate, order):
    return replace(certificate, details={"order": order})


@pytest.mark.parametrize("seed", range(20))
def test_any_order_proves_the_maximum(seed):
    model, certificate = proved(seed)
    optimum, _ = enumerate_map(model)
    shuffled = np.random.default_rng(seed).permutation(certificate.details["order"]).tolist()
    for order in (certificate.details["order"], shuffled):
        bound = verify(with_order(certificate, order), model).upper_bound
        assert bound == optimum == -np.inf or optimum <= bound <= optimum + 1e-9 * max(1.0, abs(optimum))


@pytest.mark.parametrize(
    "order", [None, [], ["x"], lambda names: names[1:], lambda names: [*names, names[0]], lambda names: [0, *names[1:]]]
)
def test_wrong_orders_are_refused(order):
    model, certificate = proved()
    given = order(certificate.details["order"]) if callable(order) else order
    with pytest.raises(CertificateError, match="does not list every variable once"):
        verify(with_order(certificate, given), model)


def test_false_claims_are_refused():
    model, certificate = proved()
    assert certificate.status == "OPTIMAL"
    for false in (
        replace(certificate, upper_bound=certificate.upper_bound - 1e-3, log_map=certificate.log_map - 1e-3),
        replace(certificate, upper_bound=certificate.upper_bound - 1e-3),
        replace(certificate, upper_bound=-np.inf, log_map=-np.inf, assignment=None, status="INFEASIBLE"),
    ):
        with pytest.raises(CertificateError):
            verify(false, model)


def test_models_with_other_parts_have_no_such_proof():
    _, certificate = proved()
    m = Model()
    m.add(ridge(m.real("x", 0.0, 1.0), gaussian(0.0)))
    with pytest.raises(CertificateError, match="needs a model of tables"):
        PROOFS["elimination"](certificate, m, None)


def test_a_table_beyond_all_measure_is_refused(monkeypatch):
    monkeypatch.setattr("certimap.verification.elimination.MOST_ENTRIES", 1)
    model, certificate = proved()
    with pytest.raises(CertificateError, match="needs a table of"):
        verify(certificate, model)
