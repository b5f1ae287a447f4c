"""Proofs of clusterings on a GPU: whole solves, dual search included, with nodes a second, or that none was found."""

from __future__ import annotations

from collections.abc import Iterator

from certimap import GaussianMixtureMAP
from certimap.experiments.data import brca, iris, wine
from certimap.mixture.kernel.gpu import find_gpu

SECONDS = 300.0
OTHER_PRIOR = {"weight_concentration_prior": 2.0, "mean_precision_prior": 0.01}


def run() -> Iterator[str]:
    """To a gap of zero, up to rounding."""
    if find_gpu() is None:
        yield "mixture GPU: no GPU was found"
        return
    cases = [
        ("iris 3 PCs", iris().points, 3, {}),
        ("wine 3 PCs", wine().points[:, :3], 3, {}),
        ("brca", brca().points, 2, {}),
        ("iris 3 PCs, a0 = 2, b0 = 0.01", iris().points, 3, OTHER_PRIOR),
    ]
    for name, X, K, prior in cases:
        model = GaussianMixtureMAP(
            K, tol=1e-9, max_nodes=None, time_limit=SECONDS, random_state=0, device="gpu", **prior
        ).fit(X)
        nodes, seconds = model.result_.statistics["nodes"], model.result_.statistics["seconds"]
        yield (
            f"mixture GPU {name} N={len(X)}: {model.status_.name} value {model.log_map_:.6f} bound "
            f"{model.upper_bound_:.6f}, {nodes:.2e} nodes, {seconds:.1f} s, {nodes / seconds / 1e6:.0f} million nodes/s"
        )
