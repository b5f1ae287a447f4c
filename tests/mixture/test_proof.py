"""Whole solves of small constrained clusterings against all labellings, every proof searched again."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers import assert_mixture_solved
from tests.mixture.by_enumeration import CONSTRAINTS, Clustering, random_clustering

from certimap import Status
from certimap.mixture.kernel.whitening import FORMS
from certimap.mixture.solve import solve_mixture

KINDS = [*CONSTRAINTS, "mixed"]
EXACT = 1e-9  # relative gap: forces the list of columns, or branching, to close what pricing leaves


def solved(clustering: Clustering, tol: float) -> Status:
    """Solve and check everything; the status."""
    optimum = clustering.optimum()
    try:
        problem = clustering.problem()
    except ValueError:
        assert optimum == -np.inf
        return Status.INFEASIBLE
    result = solve_mixture(problem, tol=tol, n_init=20, seed=1)
    assert_mixture_solved(problem, result, optimum=optimum)
    expected = Status.INFEASIBLE if optimum == -np.inf else Status.OPTIMAL
    assert result.status is expected, result.stop_reason
    return result.status


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("covariance_type", FORMS)
def test_small_sample(covariance_type: str, kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for tol in (EXACT, 1e-3):
        solved(random_clustering(rng, kind, largest=8, covariance_type=covariance_type), tol)


@pytest.mark.parametrize("features", [2, 4])
@pytest.mark.parametrize("covariance_type", FORMS)
def test_a_proof_stopped_in_wide_boxes_is_confirmed(covariance_type: str, features: int) -> None:
    """Wide boxes are bounded at a reference of their own, by the solver and by the verifier."""
    X = np.random.default_rng(features).normal(size=(40, features))
    X[:20] += 3.0
    clustering = Clustering(X, 3, covariance_type=covariance_type)
    result = solve_mixture(clustering.problem(), max_nodes=1, n_init=10, seed=0)
    assert_mixture_solved(clustering.problem(), result)
    assert result.upper_bound < 10_000.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("kind", KINDS)
def test_large_sample(kind: str, seed: int) -> None:
    rng = np.random.default_rng([KINDS.index(kind), seed, 1])
    covariance_type = FORMS[seed // 2 % len(FORMS)]
    solved(random_clustering(rng, kind, largest=11, covariance_type=covariance_type), EXACT if seed % 2 else 1e-3)
