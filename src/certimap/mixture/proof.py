"""A bound on every other clustering, by branch-and-price, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence

from certimap.certificate import Certificate
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.ledger import Ledger
from certimap.engines.partition_ranking import rank_partitions
from certimap.graph.compile import compile_model
from certimap.mixture.clusters import IntArray
from certimap.mixture.factor import mixture_model
from certimap.mixture.kernel.gpu import DeviceChoice, device_finder
from certimap.mixture.kernel.whitening import FORMS, MAX_DIMENSION
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.ranking import RANKING

MAX_ITEMS = 2000  # more, and the master's linear programs alone take minutes


def provable(problem: MixtureProblem) -> bool:
    """Whether certified pricing knows problems of this kind."""
    return (
        problem.prior.covariance_type in FORMS
        and problem.prior.dimension <= MAX_DIMENSION
        and len(problem.items) <= MAX_ITEMS
        and bool((problem.sample_weight > 0.0).all())
    )


def prove_mixture(
    problem: MixtureProblem,
    labellings: Sequence[IntArray],
    ledger: Ledger,
    *,
    seed: int = 0,
    n_jobs: int = 1,
    device: DeviceChoice = "auto",
    n_top: int = 1,
) -> Certificate | None:
    """Prove a bound from labels of the items, the best first; the bound and better partitions go into the ledger.

    The certificate refers to `mixture_model(problem)`, and ranks up to `n_top` partitions if that is more than 1. None
    if the problem is not of a provable kind, or if the search was stopped before there was any bound.
    """
    if not provable(problem) or not labellings:
        return None
    starts = [problem.point_labels(labels) for labels in labellings]
    engine = BranchAndPrice(compile_model(mixture_model(problem)), ledger, seed=seed, n_jobs=n_jobs, starts=starts)
    engine.block.device = device_finder(device)
    engine.run()
    ranking = rank_partitions(engine, n_top) if n_top > 1 else None
    return engine.certificate(more=None if ranking is None else {RANKING: ranking.record()})
