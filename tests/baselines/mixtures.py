"""Small mixture problems."""

from typing import Any

import numpy as np

from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem


def mixture(n: int = 8, dimension: int = 1, n_clusters: int = 2, seed: int = 0, **options: Any) -> MixtureProblem:
    """Points around n_clusters distant centres, in turn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension)) + 6.0 * (np.arange(n) % n_clusters)[:, None]
    prior = {key: options.pop(key) for key in list(options) if key.endswith("_prior")}
    return MixtureProblem.from_points(X, NormalWishartPrior.from_data(X, **prior), n_clusters, **options)
