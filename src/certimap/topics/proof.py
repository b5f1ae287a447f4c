"""A bound on every other assignment of topics, by branch-and-price, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certimap.certificate import Certificate
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.ledger import Ledger
from certimap.graph.compile import compile_model
from certimap.topics.factor import model_labels, topic_model
from certimap.topics.objective import IntArray
from certimap.topics.problem import TopicProblem

MAX_CELLS = 1500  # more, and the linear programs alone take minutes


def provable(problem: TopicProblem) -> bool:
    """Whether certified pricing takes problems of this size."""
    return 0 < len(problem.cells) <= MAX_CELLS


def prove_topics(
    problem: TopicProblem, labellings: Sequence[IntArray], ledger: Ledger, *, seed: int = 0, n_jobs: int = 1
) -> Certificate | None:
    """Prove a bound from labels of the items, the best first; the bound and better topics go into the ledger.

    What the ledger is offered are points of `topic_model(problem)`, which the certificate refers to. None if there are
    too many cells, or if the search was stopped before there was any bound.
    """
    if not provable(problem) or not labellings:
        return None
    starts = [np.concatenate(list(model_labels(problem, labels).values())) for labels in labellings]
    engine = BranchAndPrice(compile_model(topic_model(problem)), ledger, seed=seed, n_jobs=n_jobs, starts=starts)
    engine.run()
    return engine.certificate()
