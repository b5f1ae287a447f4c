"""No better clustering within a few moved points: the search and `verify` against all labellings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.mixture.by_enumeration import CONSTRAINTS, Clustering, random_clustering

from certimap import CertificateError, GaussianMixtureMAP, Status, verify
from certimap.engines.ledger import Ledger, Limits
from certimap.mixture.factor import mixture_model
from certimap.mixture.prior import COVARIANCE_TYPES
from certimap.mixture.region import prove_region
from certimap.mixture.search.arrays import compile_problem, new_state
from certimap.mixture.search.region import BETTER, PROVED, STOPPED, search_region
from certimap.mixture.solve import solve_mixture

KINDS = [*CONSTRAINTS, "mixed"]


def compare(clustering: Clustering, rng: np.random.Generator) -> None:
    """From the best labellings and from others: the verdict for every radius, with and without pruning."""
    try:
        problem = clustering.problem()
    except ValueError:
        return
    points, values = clustering.labellings()
    if not len(points):
        return
    instance = compile_problem(problem)
    labels = np.ascontiguousarray(points[:, np.unique(problem.point_item, return_index=True)[1]])
    plain = len(labels[0]) == len(points[0]) and clustering.sample_weight is None
    for at in {*np.argsort(-values)[:3].tolist(), int(rng.integers(len(values)))}:
        distance = (labels != labels[at]).sum(axis=1)
        for radius in range(1, 6):
            gain = values[distance <= radius].max() - values[at]
            for pruned in (False, True) if plain else (False,):
                state = new_state(instance, labels[at].copy())
                verdict = search_region(instance, state, labels[at], radius, 1e-9, pruned, 1e9, np.zeros(2))
                assert verdict == (BETTER if gain > 1e-8 else PROVED) or 1e-10 < gain <= 1e-8
                if verdict == BETTER:
                    assert problem.violations(state.labels) == []
                    assert problem.log_map(state.labels) > values[at]
                    assert (state.labels != labels[at]).sum() <= radius


@pytest.mark.parametrize("kind", KINDS)
def test_small_sample(kind: str) -> None:
    rng = np.random.default_rng([KINDS.index(kind), 9])
    compare(random_clustering(rng, kind, largest=7), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_large_sample(kind: str, seed: int) -> None:
    rng = np.random.default_rng([KINDS.index(kind), seed, 10])
    compare(random_clustering(rng, kind, largest=9), rng)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_covariance_types(covariance_type: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(7, 2))
    covariance = np.eye(2) / 3.0 if covariance_type == "known" else None
    model = GaussianMixtureMAP(
        2, covariance_type=covariance_type, covariance_prior=covariance, n_init=1, random_state=0
    ).set_params(algorithm="local-search")
    problem = model.fit(X, cannot_link=[(0, 1)]).problem_
    instance = compile_problem(problem)
    labels = np.array([z for z in np.ndindex(*[2] * 7) if not problem.violations(z)])
    values = np.array([problem.log_map(z) for z in labels])
    for at in np.argsort(-values)[:6]:
        for radius in (1, 2, 3):
            gain = values[(labels != labels[at]).sum(axis=1) <= radius].max() - values[at]
            state = new_state(instance, labels[at].copy())
            verdict = search_region(instance, state, labels[at], radius, 1e-9, False, 1e9, np.zeros(2))
            assert verdict == (BETTER if gain > 1e-9 else PROVED)
            assert verdict == PROVED or problem.log_map(state.labels) > values[at]


def overlapping(n: int = 30, D: int = 2) -> Clustering:
    rng = np.random.default_rng(2)
    return Clustering(rng.normal(size=(n, D)) + 1.5 * (np.arange(n) % 3)[:, None], 3)


def test_open_gap_leaves_a_region() -> None:
    problem = overlapping().problem()
    result = solve_mixture(problem, max_nodes=1, seed=0)
    assert result.neighbourhood is not None
    assert result.neighbourhood.startswith("all clusterings with at most ")
    expected = Status.LOCALLY_OPTIMAL if result.relative_gap > 1.0 else Status.BOUNDED
    assert result.status is expected
    certificate = result.certificate
    assert certificate is not None
    moves = certificate.details["neighbourhood"]["moves"]
    assert moves >= 4
    model = mixture_model(problem)
    report = verify(certificate, model)
    assert report.moves == 2  # more take longer than a check without `full`
    assert any("clusterings with up to 2 moved points were compared" in line for line in report.trusted)
    assert report.status is expected


def test_tied_covariance_has_a_region_without_a_certificate() -> None:
    X = overlapping().X
    model = GaussianMixtureMAP(3, covariance_type="tied", random_state=0, n_init=20).fit(X)
    assert model.status_ is Status.LOCALLY_OPTIMAL
    assert model.certificate_ is None
    assert "at most 4 points moved" in str(model.neighbourhood_)


def test_better_clusterings_are_taken() -> None:
    problem = overlapping().problem()
    best = solve_mixture(problem, algorithm="local-search", seed=0).assignment
    assert best is not None
    labels = best["z"].copy()
    labels[[0, 5, 7]] = (labels[[0, 5, 7]] + 1) % 3
    region, found = prove_region(problem, labels, Ledger(Limits()))
    assert region is not None
    assert problem.log_map(found) > problem.log_map(labels)
    stopped, same = prove_region(problem, best["z"], Ledger(Limits(time_limit=1e-9)))
    assert stopped is None
    assert (same == best["z"]).all()


def test_work_limit_says_nothing() -> None:
    problem = overlapping().problem()
    instance, labels = compile_problem(problem), np.zeros(30, dtype=np.int64)
    done = np.zeros(2)
    assert search_region(instance, new_state(instance, labels.copy()), labels, 3, 1e9, False, 10.0, done) == STOPPED


def test_false_regions_are_refused() -> None:
    """Two points that only together belong elsewhere: optimal for one move, not for two."""
    clustering = Clustering(np.random.default_rng(0).normal(size=(9, 1)), 2)
    problem = clustering.problem()
    labels, values = clustering.labellings()
    for at in np.argsort(-values):
        distance = (labels != labels[at]).sum(axis=1)
        one, two = (values[distance <= radius].max() - values[at] for radius in (1, 2))
        if one <= 0.0 and two > 1e-3:
            break
    else:
        raise AssertionError("no such labelling")
    certificate = solve_mixture(problem, tol=0.0, max_nodes=1).certificate
    assert certificate is not None
    point = replace(
        certificate,
        assignment={"z": labels[at]},
        log_map=float(values[at]),
        tolerance=0.0,
        upper_bound=certificate.upper_bound,
    )

    def claim(moves: object, margin: object = 1e-9) -> object:
        details = {**certificate.details, "neighbourhood": {"moves": moves, "margin": margin}}
        claimed = replace(point, details=details)
        gap = (claimed.upper_bound - claimed.log_map) / max(1.0, abs(claimed.log_map))
        return verify(replace(claimed, status="LOCALLY_OPTIMAL" if gap > 1.0 else "BOUNDED"), mixture_model(problem))

    assert claim(1).moves == 1  # type: ignore[attr-defined]
    with pytest.raises(CertificateError, match="with 2 moved points is better"):
        claim(2)
    assert claim(2, margin=float(two) + 1e-6).moves == 2  # type: ignore[attr-defined]
    for moves, margin in ((0, 0.0), (1, float("nan")), (1, -1.0), ("many", 0.0), (1, float("inf"))):
        with pytest.raises(CertificateError, match="malformed"):
            claim(moves, margin)
