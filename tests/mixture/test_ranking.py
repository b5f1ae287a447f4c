"""The best few clusterings against all clusterings, and what `verify` makes of rankings that were changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.helpers import assert_mixture_solved
from tests.mixture.by_enumeration import CONSTRAINTS, Clustering, random_clustering

from certimap import Certificate, CertificateError, Model, Result, Status, verify
from certimap.mixture.factor import mixture_model
from certimap.mixture.solve import solve_mixture
from certimap.results import Ranking

KINDS = [*CONSTRAINTS, "mixed"]
Parts = frozenset[frozenset[int]]


def parts_of(labels: np.ndarray) -> Parts:
    return frozenset(frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels))


def all_partitions(clustering: Clustering) -> dict[Parts, float]:
    """Every admitted partition once, whatever its clusters are called, with its value."""
    found: dict[Parts, float] = {}
    for labels, value in zip(*clustering.labellings(), strict=True):
        found.setdefault(parts_of(labels), float(value))
    return found


def ranked(clustering: Clustering, count: int, tol: float) -> Result | None:
    """Solve, rank, and check everything against all partitions; None where constraints contradict each other."""
    try:
        problem = clustering.problem()
    except ValueError:
        return None
    everything = all_partitions(clustering)
    result = solve_mixture(problem, tol=tol, max_nodes=300_000, n_init=20, seed=1, n_top=count)
    assert_mixture_solved(problem, result, optimum=max(everything.values(), default=-np.inf))
    ranking = result.ranking
    assert ranking is not None
    assert ranking.wanted == count
    check(ranking, everything)
    known = np.asarray(clustering.constraints.get("y", np.full(len(clustering.X), -1)))
    for entry in ranking:
        assert ((known < 0) | (entry.labels == known)).all()
        labels = problem.item_labels(entry.labels)
        assert problem.violations(labels) == []
        assert entry.log_map == pytest.approx(problem.log_map(labels), rel=1e-9, abs=1e-9)
    return result


def check(ranking: Ranking, everything: dict[Parts, float]) -> None:
    keys = [parts_of(entry.labels) for entry in ranking]
    assert len(set(keys)) == len(keys)
    values = sorted(everything.values(), reverse=True)[: len(keys)]
    np.testing.assert_allclose([entry.log_map for entry in ranking], values, rtol=1e-9, atol=1e-9)
    others = max((value for key, value in everything.items() if key not in keys), default=-np.inf)
    assert others <= ranking.others + 1e-9 * max(1.0, abs(ranking.others))
    if keys:
        assert [entry.difference for entry in ranking] == [ranking[0].log_map - entry.log_map for entry in ranking]
        assert ranking.proved_difference == max(0.0, ranking[0].log_map - ranking.others)


@pytest.mark.parametrize("kind", KINDS)
def test_small_sample(kind: str) -> None:
    rng = np.random.default_rng([KINDS.index(kind), 7])
    for tol in (1e-3, 1e-9):
        ranked(random_clustering(rng, kind, largest=8), int(rng.integers(2, 8)), tol)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_large_sample(kind: str, seed: int) -> None:
    rng = np.random.default_rng([KINDS.index(kind), seed, 8])
    ranked(random_clustering(rng, kind, largest=10), int(rng.integers(2, 15)), 1e-9 if seed % 2 else 1e-3)


def two_groups() -> Clustering:
    rng = np.random.default_rng(3)
    return Clustering(np.concatenate([rng.normal(size=(5, 1)), 3.0 + rng.normal(size=(4, 1))]), 2)


def test_as_many_as_wanted_and_all_there_are() -> None:
    clustering = two_groups()
    result = ranked(clustering, 12, 1e-3)
    assert result is not None
    assert result.ranking is not None
    assert result.status is Status.OPTIMAL
    assert len(result.ranking) == 12
    assert result.ranking.complete
    few = replace(clustering, X=clustering.X[:3])
    result = ranked(few, 50, 1e-3)
    assert result is not None
    assert result.ranking is not None
    assert len(result.ranking) == len(all_partitions(few)) == 4
    assert not result.ranking.complete
    assert result.ranking.proved_difference > 100.0


def test_without_a_proof_nothing_is_ranked() -> None:
    problem = two_groups().problem()
    for options in ({"algorithm": "local-search"}, {"max_nodes": 1, "tol": 0.0}):
        result = solve_mixture(problem, n_top=3, **options)  # type: ignore[arg-type]
        assert result.ranking is not None
        assert (len(result.ranking), result.ranking.others) == (0, result.upper_bound)
    assert solve_mixture(problem).ranking is None
    with pytest.raises(ValueError, match="n_top must be at least 1, got 0"):
        solve_mixture(problem, n_top=0)


@pytest.fixture(scope="module")
def solved() -> tuple[Model, Certificate]:
    problem = two_groups().problem()
    result = solve_mixture(problem, n_top=5)
    assert result.certificate is not None
    model = mixture_model(problem)
    report = verify(result.certificate, model, full=True)
    assert report.ranking is not None
    assert len(report.ranking.values) == 5
    return model, result.certificate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: {"labels": r["labels"][:-2], "values": r["values"][:-2]}, "not ranked is worth more"),
        (lambda r: {"labels": r["labels"][1:], "values": r["values"][1:]}, "not ranked is worth more"),
        (lambda r: {"others": r["others"] - 1.0}, "not ranked is worth more"),
        (lambda r: {"values": r["values"] + [0.0, 0.0, 1e-6, 0.0, 0.0]}, "has value"),
        (lambda r: {"labels": r["labels"][::-1], "values": r["values"][::-1]}, "order"),
        (lambda r: {"labels": 1 - r["labels"][[0, 0, 1, 2, 3]]}, "twice"),
        (lambda r: {"labels": r["labels"] + 1}, "labels outside"),
        (lambda r: {"values": r["values"][:-1]}, "malformed"),
        (lambda r: {"others": float("nan")}, "malformed"),
        (lambda r: {"labels": r["labels"][:, 1:]}, "malformed"),
    ],
)
def test_changed_rankings_are_refused(solved: tuple[Model, Certificate], change: Any, message: str) -> None:
    model, certificate = solved
    record = certificate.details["ranking"]
    wrong = {**record, **change(record)}
    with pytest.raises(CertificateError, match=message):
        verify(replace(certificate, details={**certificate.details, "ranking": wrong}), model, full=True)


def test_fewer_claims_are_fine(solved: tuple[Model, Certificate]) -> None:
    model, certificate = solved
    record = certificate.details["ranking"]
    less = {"labels": 1 - record["labels"][:2], "values": record["values"][:2], "others": record["values"][2]}
    report = verify(replace(certificate, details={**certificate.details, "ranking": less}), model)
    assert report.ranking is not None
    assert report.ranking.others == pytest.approx(record["values"][2])


def test_ranking_violating_a_constraint_is_refused() -> None:
    problem = replace(two_groups(), constraints={"cannot_link": [(0, 8)]}).problem()
    certificate = solve_mixture(problem, n_top=2).certificate
    assert certificate is not None
    record = certificate.details["ranking"]
    labels = np.array(record["labels"])
    labels[1] = 0
    wrong = {**certificate.details, "ranking": {**record, "labels": labels}}
    with pytest.raises(CertificateError, match="violates"):
        verify(replace(certificate, details=wrong), mixture_model(problem))
