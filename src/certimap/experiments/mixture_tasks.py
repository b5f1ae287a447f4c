"""The mixture's methods on a data set, as tasks."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from certimap.baselines.gibbs_mixture import BURN_IN, ITERATIONS, gibbs_best, gibbs_chain, gibbs_mode
from certimap.baselines.scip import NAME as BRANCH_AND_BOUND
from certimap.baselines.scip import apart
from certimap.baselines.scip_mixture import scip_mixture
from certimap.baselines.variational_mixture import variational_mixture
from certimap.experiments.data import DataSet
from certimap.experiments.methods import OURS
from certimap.experiments.tasks import Record, Task, record_of_result, record_of_run
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import solve_mixture
from certimap.results import Callback

TRACE_POINTS = 1000  # sweeps kept for the plots


@dataclass(frozen=True)
class Effort:
    """How much work goes into an answer.

    Attributes:
        seconds: limit of certimap's proof and of branch and bound, for one problem.
        starts: starts of certimap's search, and runs of variational Bayes as far as they go.
        tol: relative gap at which certimap stops.
        seed: of everything that is random.
    """

    seconds: float
    starts: int
    tol: float
    seed: int


def certimap_task(data: DataSet, effort: Effort, links: int = 0) -> Task:
    """Search and proof under the first `links` must-links."""
    pairs = data.must_links(links, effort.seed) if links else ()

    def compute(callback: Callback) -> Any:
        warm_up()
        started = time.perf_counter()
        result = solve_mixture(
            data.problem(pairs),
            tol=effort.tol,
            time_limit=effort.seconds,
            n_init=effort.starts,
            seed=effort.seed,
            callback=callback,
        )
        labels = None if result.assignment is None else result.assignment["z"].tolist()
        return record_of_result(OURS, result, time.perf_counter() - started, labels)

    parameters = {**_data_key(data), **vars(effort), "links": [list(pair) for pair in pairs]}
    return Task("certimap", parameters, _label("certimap", data, links), compute, compiled=True)


def branch_and_bound_task(data: DataSet, effort: Effort, links: int = 0) -> Task:
    """SCIP under the first `links` must-links."""
    pairs = data.must_links(links, effort.seed) if links else ()

    def compute(callback: Callback) -> Any:
        return record_of_run(apart(scip_mixture, data.problem(pairs), effort.seconds))

    parameters = {**_data_key(data), "seconds": effort.seconds, "links": [list(pair) for pair in pairs]}
    return Task("scip", parameters, _label(BRANCH_AND_BOUND, data, links), compute)


def variational_task(data: DataSet, effort: Effort) -> Task:
    """Variational Bayes."""

    def compute(callback: Callback) -> Any:
        return record_of_run(variational_mixture(data.problem(), seed=effort.seed))

    return Task("variational", {**_data_key(data), "seed": effort.seed}, _label("variational Bayes", data), compute)


def gibbs_task(data: DataSet, effort: Effort) -> Task:
    """One chain: the mode of bins, the best sample, and what the trace plots show."""

    def compute(callback: Callback) -> Any:
        problem = data.problem()
        chain = gibbs_chain(problem, seed=effort.seed)
        return {
            "records": [record_of_run(read(problem, chain)) for read in (gibbs_mode, gibbs_best)],
            "weights": chain.weights[:TRACE_POINTS].tolist(),
            "means": chain.means[:TRACE_POINTS].tolist(),
            "burn_in": chain.burn_in,
        }

    parameters = {**_data_key(data), "seed": effort.seed, "iterations": ITERATIONS, "burn_in": BURN_IN}
    return Task("gibbs", parameters, _label("Gibbs sampler", data), compute, compiled=True)


@cache
def warm_up() -> None:
    """Compile what a solve needs, so that its limit and its seconds are those of the search and the proof."""
    points = np.array([[0.0, 0.0], [0.1, 1.0], [1.0, 0.2], [5.0, 4.0], [5.2, 5.0], [6.0, 4.1]])
    prior = NormalWishartPrior.from_data(points)
    solve_mixture(MixtureProblem.from_points(points, prior, 2, must_link=[(0, 1)]), n_init=2)


def records_of(result: Any) -> list[Record]:
    """The records in the result of any of these tasks."""
    return [Record(**entry) for entry in result.get("records", [result])]


def _data_key(data: DataSet) -> dict[str, Any]:
    digest = hashlib.sha256(np.ascontiguousarray(data.points, dtype="<f8").tobytes()).hexdigest()
    return {"data": data.name, "points": digest, "clusters": data.n_clusters}


def _label(method: str, data: DataSet, links: int = 0) -> str:
    return f"{method} on {data.name}" + (f", {links} must-links" if links else "")
