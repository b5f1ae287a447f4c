"""Small topic problems."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certimap.topics.prior import TopicPrior
from certimap.topics.problem import TopicProblem

TINY = np.array([[2, 0, 1], [0, 3, 1], [1, 1, 0]])


def topics(
    counts: ArrayLike = TINY, n_topics: int = 2, alpha: float = 1.1, eta: float = 1.1, **constraints: Any
) -> TopicProblem:
    return TopicProblem.from_counts(counts, TopicPrior(alpha, eta), n_topics, **constraints)
