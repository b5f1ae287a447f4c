"""The verifier's own pricing of Gaussian clusters against enumeration of all subsets, for every covariance type."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.verification.gaussian_cases import KINDS, Case, cut_record, points, rotation_of

from certimap import CertificateError

TREE = ("parent", "side", "coordinate", "cut", "nodes")  # of a record
GROUPS = [[0, 3], [1], [2, 5, 7], [4], [6], [8]]


def case_of(seed: int, kind: str, option: str) -> Case:
    """Nine points in 1 to 3 dimensions, at prices that make many sets good."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    dimension = 1 + seed % 3
    X = points(rng, 9, dimension)
    weight = None
    options: dict[str, Any] = {}
    if option == "groups":
        options = {"groups": GROUPS}
    elif option == "apart":
        options = {"apart": ((0, 1), (2, 5), (3, 8))}
    elif option == "sizes":
        options = {"low": 2, "high": 5}
    elif option == "weights":
        weight = rng.uniform(0.3, 3.0, size=9)
        options = {"sample_weight": weight}
    elif option == "whole weights":
        weight = rng.integers(1, 4, size=9) * 1.0
        options = {"sample_weight": weight, "groups": GROUPS, "apart": ((0, 1),)}
    elif option == "soft":
        options = {
            "rewards": ((0, 1, 0.7), (2, 3, -1.2), (0, 1, 0.4)),
            "groups": [[0], [1], [2, 3], *([i] for i in range(4, 9))],
        }
    elif option == "far":
        X[0] += 40.0
    prior = [(1.0, 1.0, 2.0), (2.0, 0.01, 0.0), (4.5, 3.0, 9.0)][seed % 3]
    made = Case.of(X, np.zeros(9), prior=prior, kind=kind, **options)
    whole = made.pricing.value(range(9))[0]
    share = (np.ones(9) if weight is None else weight) / (9.0 if weight is None else weight.sum())
    prices = float(whole) * share + rng.normal(size=9)
    return Case.of(X, prices, prior=prior, kind=kind, rotation=rotation_of(rng, kind, dimension), **options)


def check(case: Case, *depths: float) -> None:
    """The largest reduced value is confirmed, less is refused, and the sets near it are found one for one."""
    price = case.family + 1e-7
    case.pricing.check_price(case.claim(price))
    for depth in depths:
        found = case.pricing.columns_above(case.claim(price), Fraction(case.best - depth))
        assert found == case.above(case.best - depth)
    with pytest.raises(CertificateError, match=r"larger reduced value|cannot be confirmed"):
        case.pricing.check_price(case.claim(case.best - 1e-7))


OPTIONS = ("plain", "groups", "apart", "sizes", "weights", "whole weights", "soft", "far")


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_prices_and_lists_of_all_subsets(kind: str, option: str) -> None:
    check(case_of(10 + OPTIONS.index(option), kind, option), 0.5, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_more_subsets(kind: str, option: str, seed: int) -> None:
    check(case_of(100 + seed, kind, option), 0.1, 1.0, 6.0)


def coordinates(kind: str, dimension: int) -> dict[str, list[int]]:
    """Coordinates of a box that a recorded tree may cut, and those it may not."""
    size, tau = 1 + 2 * dimension + dimension * (dimension - 1) // 2, 1 + dimension
    allowed = list(range(size))
    if kind == "diag":
        allowed = list(range(tau + dimension))
    elif kind == "spherical":
        allowed = list(range(tau + 1))
    elif kind == "known":
        allowed = list(range(tau))
    return {"allowed": allowed, "forbidden": [*(c for c in range(size) if c not in allowed), size]}


@pytest.mark.parametrize("option", ["plain", "groups", "weights"])
@pytest.mark.parametrize("kind", KINDS)
def test_recorded_cuts_leave_no_set_out(kind: str, option: str) -> None:
    case = case_of(17, kind, option)
    rng = np.random.default_rng(5)
    for _ in range(3):
        case.record = cut_record(case.record, rng, coordinates(kind, 3)["allowed"], 12)
        found = case.pricing.columns_above(case.claim(case.family + 1e-7), Fraction(case.best - 3.0))
        assert found == case.above(case.best - 3.0)


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_of_what_a_kind_does_not_have_are_refused(kind: str) -> None:
    case = case_of(17, kind, "plain")
    for coordinate in coordinates(kind, 3)["forbidden"]:
        record = cut_record(case.record, np.random.default_rng(0), [coordinate], 1)
        with pytest.raises(CertificateError, match="recorded pricing tree is malformed"):
            case.pricing.check_price(case.claim(case.family + 1e-7, **record))


@pytest.mark.parametrize("kind", KINDS)
def test_rotations_that_do_not_fit_are_refused(kind: str) -> None:
    case = case_of(14, kind, "plain")
    price = case.family + 1e-7
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    wrong = [1.5 * turned, turned + 0.4 * np.eye(3)[[1, 2, 0]], np.zeros((3, 3)), np.eye(2), np.full((3, 3), np.nan)]
    if kind == "diag":
        wrong += [turned, np.eye(3)[[1, 0, 2]], -np.eye(3), np.eye(3) + 1e-9]
    else:
        case.pricing.check_price(case.claim(price, rotation=turned))
        case.pricing.check_price(case.claim(price, rotation=-np.eye(3)[[1, 0, 2]]))
    for rotation in wrong:
        with pytest.raises(CertificateError, match="rotation"):
            case.pricing.check_price(case.claim(price, rotation=rotation))


@pytest.mark.parametrize("kind", KINDS)
def test_rotations_that_are_off_a_little_cost_a_little(kind: str) -> None:
    """The verifier's error term takes in what a rotation is off; diag has none to be off."""
    case = case_of(14, kind, "plain")
    off = np.eye(3) if kind == "diag" else np.eye(3) + 1e-7 * np.random.default_rng(1).normal(size=(3, 3))
    found = case.pricing.columns_above(case.claim(case.family + 1e-3, rotation=off), Fraction(case.best - 3.0))
    assert found == case.above(case.best - 3.0)
    with pytest.raises(CertificateError, match=r"larger reduced value|cannot be confirmed"):
        case.pricing.check_price(case.claim(case.best - 1e-7, rotation=off))


@pytest.mark.parametrize("kind", KINDS)
def test_records_that_leave_sets_out_are_refused(kind: str) -> None:
    case = case_of(17, kind, "plain")
    record = cut_record(case.record, np.random.default_rng(1), coordinates(kind, 3)["allowed"], 6)
    price = case.family + 1e-7
    for dropped in range(len(record["parent"])):
        left = {k: np.delete(v, dropped) if k in TREE else v for k, v in record.items()}
        with pytest.raises(CertificateError, match=r"malformed|does not cover"):
            case.pricing.check_price(case.claim(price, **left))
    for sizes in (record["sizes"][1:], record["sizes"] + [[1, 0], [0, 0]], record["sizes"] + [[0, 0], [0, -1]]):
        count = len(sizes)
        flat = {k: v[:count] for k, v in case.record.items() if k in TREE}
        with pytest.raises(CertificateError, match=r"leaves sizes of sets out"):
            case.pricing.check_price(case.claim(price, **flat, sizes=sizes))
