"""Exact k-means on the line by branch-and-price, against dynamic programming over the sorted points."""

from __future__ import annotations

import time

import numpy as np

from certimap import Model
from certimap.engines.branch_and_price import BranchAndPrice
from certimap.engines.ledger import Ledger, Limits
from certimap.graph.compile import compile_model
from certimap.model.partition import clusters_1d

CASES = [(100, 3, 0), (100, 3, 1), (100, 5, 3), (200, 3, 5)]  # points, clusters, seed


def run() -> list[str]:
    """One line per case; the first solve of all only compiles."""
    _solve(_points(12, 0), 2)
    return [_line(n, n_clusters, _points(n, seed)) for n, n_clusters, seed in CASES]


def _points(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=n) * 2.0 + rng.integers(0, 3, n) * 3.0


def _line(n: int, n_clusters: int, y: np.ndarray) -> str:
    started = time.perf_counter()
    ledger = _solve(y, n_clusters)
    ours = time.perf_counter() - started
    started = time.perf_counter()
    exact = _dynamic_programming(y, n_clusters)
    peer = time.perf_counter() - started
    return (
        f"k-means 1-D N={n} K={n_clusters}: value {ledger.log_map:.6f} bound {ledger.upper_bound:.6f} "
        f"dynamic programming {exact:.6f} (difference {ledger.log_map - exact:.1e}), "
        f"{ledger.nodes} nodes, {ours:.2f} s against {peer:.3f} s (ratio {ours / peer:.1f})"
    )


def _solve(y: np.ndarray, n_clusters: int) -> Ledger:
    model = Model()
    model.add(clusters_1d(model.categorical("z", n_clusters, shape=len(y)), y))
    ledger = Ledger(Limits())
    BranchAndPrice(compile_model(model), ledger, seed=0).run()
    return ledger


def _dynamic_programming(y: np.ndarray, n_clusters: int) -> float:
    """Optimal clusters are intervals of the sorted points: O(K N^2)."""
    y = np.sort(y - y.mean())
    n = len(y)
    s, q = np.concatenate([[0.0], np.cumsum(y)]), np.concatenate([[0.0], np.cumsum(y * y)])
    loss = np.full((n_clusters + 1, n + 1), np.inf)
    loss[0, 0] = 0.0
    for k in range(1, n_clusters + 1):
        for j in range(1, n + 1):
            i = np.arange(j)
            loss[k, j] = (loss[k - 1, i] + (q[j] - q[i] - (s[j] - s[i]) ** 2 / (j - i)) / 2.0).min()
    return -float(loss[1:, n].min())
