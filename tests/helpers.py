"""What every area's tests share: brute force, and the one set of assertions that every solve must pass."""

import itertools
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize

from certimap import Certificate, Model, Result, Status
from certimap.mixture.factor import mixture_model
from certimap.mixture.problem import MixtureProblem
from certimap.model.domains import Categorical, Integer, Real
from certimap.results import classify
from certimap.topics.factor import topic_model
from certimap.topics.problem import TopicProblem
from certimap.verification.checker import VerificationReport, verify

ROUNDING = 1e-9  # relative to max(1, |value|): sums of a few thousand terms in float64
ENUMERABLE = 20_000  # joint states up to which brute force is quick enough for a default test


# ------------------------------------------------------------------------------------------------------- brute force
def is_discrete(model: Model) -> bool:
    return all(isinstance(v.domain, Categorical | Integer) for v in model.variables.values())


def joint_states(model: Model) -> Iterator[dict[str, Any]]:
    """Every joint state of the categorical and integer variables."""
    variables = [v for v in model.variables.values() if isinstance(v.domain, Categorical | Integer)]
    names = [v.name for v in variables]
    for states in itertools.product(*(v.states for v in variables)):
        yield dict(zip(names, states, strict=True))


def n_joint_states(model: Model) -> int:
    return math.prod(len(v.states) for v in model.variables.values() if isinstance(v.domain, Categorical | Integer))


def enumerate_map(model: Model, grid: int = 15) -> tuple[float, dict[str, Any] | None]:
    """The best value and point by brute force; (-inf, None) if no point is feasible.

    Reals are searched on a grid of `grid` points each, refined around the best: then the value is a lower estimate.
    """
    best: tuple[float, dict[str, Any] | None] = (-math.inf, None)
    reals = [v for v in model.variables.values() if isinstance(v.domain, Real)]
    if not is_discrete(model) and len(reals) != sum(
        not isinstance(v.domain, Categorical | Integer) for v in model.variables.values()
    ):
        raise ValueError("brute force knows categorical, integer and real variables only")
    for values in joint_states(model):
        found = _best_reals(model, values, grid) if reals else (_value(model, values), values)
        if found[0] > best[0]:
            best = found
    return best[0], None if best[1] is None else model.pack(best[1])


def _value(model: Model, values: dict[str, Any]) -> float:
    # Stricter than the model's own tolerance, which a search over reals would make use of.
    if any(not c.satisfied(values, tolerance=1e-12) for c in model.constraints.values()):
        return -math.inf
    return model.objective(values)


def _best_reals(model: Model, values: dict[str, Any], grid: int) -> tuple[float, dict[str, Any]]:
    """The best continuation of a joint state: a grid, then simplex search from its best point."""
    reals = [v for v in model.variables.values() if isinstance(v.domain, Real)]
    bounds = [(v.domain.lower, v.domain.upper) for v in reals if isinstance(v.domain, Real)]
    names = [v.name for v in reals]

    def complete(x: Any) -> dict[str, Any]:
        inside = [min(max(float(s), low), high) for s, (low, high) in zip(x, bounds, strict=True)]
        return {**values, **dict(zip(names, inside, strict=True))}

    def loss(x: Any) -> float:
        value = _value(model, complete(x))
        return -value if math.isfinite(value) else 1e30

    start = min(itertools.product(*(np.linspace(low, high, grid) for low, high in bounds)), key=loss)
    if loss(start) >= 1e30:
        return -math.inf, complete(start)
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 400 * len(bounds)}
    refined = optimize.minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options)
    x = refined.x if refined.fun < loss(start) else start
    return -loss(x), complete(x)


# -------------------------------------------------------------------------------------------------------- every solve
def assert_solved(
    model: Model, result: Result, *, optimum: float | None = None, status: Status | None = None
) -> VerificationReport | None:
    """Everything that must hold of any result; `optimum` is a value that some feasible point attains.

    Returns the verifier's report, None where the search stopped before it had anything to prove.
    """
    assert_point(model, result)
    assert_history(result)
    scale = max(1.0, abs(result.upper_bound)) if math.isfinite(result.upper_bound) else 1.0
    assert result.log_map <= result.upper_bound + ROUNDING * scale
    if status is not None:
        assert result.status is status
    if optimum is not None:
        slack = ROUNDING * max(1.0, abs(optimum)) if math.isfinite(optimum) else 0.0
        assert result.upper_bound >= optimum - slack, "the bound cuts the optimum off"
        if is_discrete(model):
            assert result.log_map <= optimum + slack, "better than the optimum"
    if result.status is Status.INFEASIBLE:
        assert optimum is None or optimum == -math.inf
        assert_conflict(model, result.conflict)
    else:
        assert not result.conflict
    if result.certificate is None:
        assert result.upper_bound == math.inf, "a bound without a proof"
        assert result.status is classify(result.log_map, result.upper_bound, 0.0, result.neighbourhood)
        return None
    tolerance = result.certificate.tolerance
    assert result.status is classify(result.log_map, result.upper_bound, tolerance, result.neighbourhood)
    if optimum is not None and result.status is Status.OPTIMAL:
        slack = tolerance * max(1.0, abs(result.log_map)) + ROUNDING * max(1.0, abs(optimum))
        assert result.log_map >= optimum - slack, "called optimal, but a better point exists"
    return assert_certified(model, result)


def assert_mixture_solved(
    problem: MixtureProblem, result: Result, *, optimum: float | None = None, status: Status | None = None
) -> VerificationReport | None:
    """`assert_solved` for a clustering, whose certificate refers to the model of its problem."""
    if result.status is Status.INFEASIBLE:  # found by the search for a feasible point, with its own conflict
        assert optimum is None or optimum == -math.inf
        assert (result.log_map, result.upper_bound, result.certificate) == (-math.inf, -math.inf, None)
        return None
    return assert_solved(mixture_model(problem), result, optimum=optimum, status=status)


def assert_topics_solved(
    problem: TopicProblem, result: Result, *, optimum: float | None = None, status: Status | None = None
) -> VerificationReport | None:
    """`assert_solved` for topics, whose certificate refers to the model of their problem."""
    if result.status is Status.INFEASIBLE:
        assert optimum is None or optimum == -math.inf
        assert (result.log_map, result.upper_bound, result.certificate) == (-math.inf, -math.inf, None)
        return None
    if result.assignment is not None:
        labels = problem.item_labels(result.assignment["z"])
        assert problem.violations(labels) == []
        assert abs(problem.log_map(labels) - result.log_map) <= ROUNDING * max(1.0, abs(result.log_map))
    if not len(problem.cells):
        assert result.certificate is None and result.upper_bound == math.inf
        assert optimum is None or result.log_map <= optimum + ROUNDING * max(1.0, abs(optimum))
        return None
    return assert_solved(topic_model(problem), result, optimum=optimum, status=status)


def assert_point(model: Model, result: Result) -> None:
    """The point satisfies every constraint and has the value that is reported."""
    if result.assignment is None:
        assert result.log_map == -math.inf
        return
    assert not model.violated(result.assignment)
    value = model.value(result.assignment)
    assert math.isfinite(value)
    assert abs(value - result.log_map) <= ROUNDING * max(1.0, abs(value))


def assert_history(result: Result) -> None:
    """Bounds never rise, incumbents never fall, and the last of both agree with the result."""
    for earlier, later in itertools.pairwise(result.history):
        assert later.bound <= earlier.bound
        assert later.incumbent >= earlier.incumbent
        assert later.nodes >= earlier.nodes
        assert later.seconds >= earlier.seconds
    if result.history:
        assert result.history[-1].bound >= result.upper_bound
        assert result.history[-1].incumbent <= result.log_map


def assert_conflict(model: Model, conflict: tuple[str, ...]) -> None:
    """The named constraints and factors exclude every point, and without any one of them they do not."""
    if not is_discrete(model) or n_joint_states(model) > ENUMERABLE:
        return
    factors = dict(zip(model.factor_names(), model.factors, strict=True))
    needed = set()
    for values in joint_states(model):
        broken = {name for name, c in model.constraints.items() if not c.satisfied(values)}
        broken.update(name for name, f in factors.items() if f.value_at(values) == -math.inf)
        broken &= set(conflict)
        assert broken, f"{values} satisfies everything in the conflict {conflict}"
        if len(broken) == 1:
            needed |= broken
    assert needed == set(conflict), f"the conflict needs {needed} only"


def assert_certified(model: Model, result: Result) -> VerificationReport:
    """The certificate says what the result says, survives a file, and is verified."""
    assert result.certificate is not None
    assert result.certificate.log_map == result.log_map
    assert result.certificate.upper_bound == result.upper_bound
    assert result.certificate.status == result.status.name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        result.certificate.save(path)
        report = verify(Certificate.load(path), model, full=True)
    assert not report.sampled
    assert report.status is result.status
    if math.isfinite(result.log_map):
        assert abs(report.lower_bound - result.log_map) <= ROUNDING * max(1.0, abs(result.log_map))
    if math.isfinite(result.upper_bound):
        assert report.upper_bound <= result.upper_bound + ROUNDING * max(1.0, abs(result.upper_bound))
        assert report.lower_bound <= report.upper_bound + ROUNDING * max(1.0, abs(report.upper_bound))
    else:
        assert report.upper_bound == result.upper_bound
    return report
