"""Branch and bound: the formulations against enumeration, and what is said without the extra."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.baselines.mixtures import mixture
from tests.baselines.topics import TINY, topics
from tests.helpers import ROUNDING

from certimap import StopReason
from certimap.baselines import scip
from certimap.baselines.mixture_posterior import log_density
from certimap.baselines.scip import MissingSolverError, is_available
from certimap.baselines.scip_mixture import scip_mixture
from certimap.baselines.scip_topics import scip_topics
from certimap.mixture.problem import MixtureProblem

TOLERANCE = 1e-3  # SCIP's feasibility and gap tolerances, summed over the rows of these small programs
needs_scip = pytest.mark.skipif(not is_available(), reason="pyscipopt is not installed")


def best_labelling(problem: MixtureProblem) -> float:
    labellings = product(range(problem.n_clusters), repeat=len(problem.items))
    return max(problem.log_map(z) for z in labellings if not problem.violations(z))


@needs_scip
@pytest.mark.parametrize(
    "options",
    [
        {"n": 6},
        {"n": 6, "must_link": [(0, 1), (2, 3)]},
        {"n": 5, "known_labels": [1, -1, -1, 0, -1]},
        {"n": 5, "weight_concentration_prior": 1.7, "mean_precision_prior": 0.4},
        {"n": 4, "n_clusters": 3},  # one cluster stays empty
    ],
    ids=["free", "must-link", "known", "prior", "empty"],
)
def test_mixture_against_enumeration(options: dict[str, Any]) -> None:
    problem = mixture(**options)
    optimum = best_labelling(problem)
    run = scip_mixture(problem, time_limit=60.0)
    assert run.returned.assignment is not None
    assert run.refitted.assignment is not None
    labels = run.refitted.assignment["z"]
    assert not problem.violations(problem.item_labels(labels))
    assert run.refitted.log_map == problem.log_map(problem.item_labels(labels))
    point = [run.returned.assignment[name] for name in ("z", "pi", "mu", "Lambda")]
    assert run.returned.log_map == log_density(problem, *point)
    assert run.returned.log_map <= run.refitted.log_map + ROUNDING <= optimum + 2 * ROUNDING
    assert run.details is not None
    assert run.details["stated value"] == pytest.approx(run.returned.log_map, abs=10 * TOLERANCE)  # one objective
    assert run.claimed_bound is not None
    assert run.claimed_bound >= optimum - TOLERANCE, "the boxes cut the optimum off"
    assert run.returned.upper_bound == np.inf, "the bound of a solver in floating point is no proof"
    if run.returned.stop_reason is StopReason.TOLERANCE:
        assert run.refitted.log_map == pytest.approx(optimum, abs=TOLERANCE)
        assert run.claimed_bound == pytest.approx(optimum, abs=2 * TOLERANCE)


@needs_scip
def test_mixture_in_two_dimensions_keeps_the_optimum() -> None:
    problem = mixture(6, 2, 2)
    run = scip_mixture(problem, max_nodes=5)
    assert run.claimed_bound is not None
    assert run.claimed_bound >= best_labelling(problem) - TOLERANCE


@needs_scip
@pytest.mark.parametrize(("alpha", "eta"), [(1.1, 1.1), (1.0, 1.0), (2.0, 1.0)])
def test_topics_against_enumeration(alpha: float, eta: float) -> None:
    problem = topics(TINY, alpha=alpha, eta=eta)
    optimum = max(problem.log_map(z) for z in product(range(2), repeat=problem.n_items))
    run = scip_topics(problem, time_limit=60.0)
    assert run.refitted.log_map == pytest.approx(optimum, abs=TOLERANCE)
    assert run.claimed_bound is not None
    assert optimum - 1e-5 <= run.claimed_bound <= optimum + TOLERANCE


@needs_scip
def test_stopped_at_once() -> None:
    run = scip_mixture(mixture(40, 2, 3), time_limit=1e-6)
    assert run.returned.assignment is None
    assert run.returned.stop_reason is StopReason.TIME
    assert run.claimed_bound is None or run.claimed_bound > 0.0


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scip, "find_spec", lambda name: None)
    assert not is_available()
    for run in (lambda: scip_mixture(mixture()), lambda: scip_topics(topics())):
        with pytest.raises(MissingSolverError, match=r"needs pyscipopt: pip install 'certimap\[scip\]'"):
            run()


def test_unknown_constraints_are_refused() -> None:
    for problem in (mixture(cannot_link=[(0, 1)]), mixture(min_size=1), mixture(soft_must_link=[(0, 1, 1.0)])):
        with pytest.raises(ValueError, match="takes must-links and known labels only"):
            scip_mixture(problem)
    with pytest.raises(ValueError, match="degrees_of_freedom_prior above the dimension 1"):
        scip_mixture(mixture(degrees_of_freedom_prior=1.0))
    with pytest.raises(ValueError, match="knows full covariances only, got 'diag'"):
        scip_mixture(_diagonal())


def _diagonal() -> MixtureProblem:
    from certimap.mixture.prior import NormalWishartPrior

    X = np.arange(4.0)[:, None]
    return MixtureProblem.from_points(X, NormalWishartPrior.from_data(X, "diag"), 2)
