"""A bound on every other assignment of topics, by branch-and-price, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence

from certimap.certificate import Certificate
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.ledger import Ledger
from certimap.graph.compile import compile_model
from certimap.topics.factor import inexpressible, topic_model
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem

MAX_CELLS = 1500  # more, and the linear programs alone take minutes


def provable(problem: TopicProblem) -> bool:
    """Whether certified pricing knows problems of this kind and size."""
    return not inexpressible(problem) and 0 < len(problem.cells) <= MAX_CELLS


def prove_topics(
    problem: TopicProblem, labellings: Sequence[IntArray], ledger: Ledger, *, seed: int = 0, n_jobs: int = 1
) -> Certificate | None:
    """Prove a bound from labels of the items, the best first; the bound and better topics go into the ledger.

    What the ledger is offered are topics of the cells, {"z": labels}. The certificate refers to `topic_model(problem)`.
    None if the problem is not of a provable kind, or if the search was stopped before there was any bound.
    """
    if not provable(problem) or not labellings:
        return None
    starts = [problem.cell_labels(labels) for labels in labellings]
    engine = BranchAndPrice(compile_model(topic_model(problem)), ledger, seed=seed, n_jobs=n_jobs, starts=starts)
    engine.run()
    return engine.certificate()
