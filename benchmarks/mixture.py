"""Clusterings: values against variational Bayes, Gibbs sampling, branch and bound; proofs; the search at scale."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud, load_wine, make_blobs
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils import shuffle

from certimap import GaussianMixtureMAP
from certimap.baselines.gibbs_mixture import gibbs_best, gibbs_chain
from certimap.baselines.isolation import CrashError, isolated
from certimap.baselines.scip_mixture import scip_mixture
from certimap.baselines.variational_mixture import variational_mixture
from certimap.experiments.data import DATA_SETS, brca, iris, wine
from certimap.mixture.prior import NormalWishartPrior
from certimap.mixture.problem import MixtureProblem
from certimap.mixture.solve import solve_mixture
from certimap.results import Result

TOL = 1e-3
SEARCH_SECONDS = 5.0
SCIP_SECONDS = 20.0


def values() -> Iterator[str]:
    """The paper's three data sets, in five seconds, and twenty more: our search against the others' refitted labels."""
    _warm_up()
    ahead = total = 0
    for name, points, K, limited in _value_cases():
        problem = MixtureProblem.from_points(points, NormalWishartPrior.from_data(points), K)
        ours = solve_mixture(problem, algorithm="local-search", time_limit=SEARCH_SECONDS if limited else None)
        peers = [variational_mixture(problem), gibbs_best(problem, gibbs_chain(problem, iterations=300))]
        if limited:
            with suppress(CrashError):  # SCIP may fail on brca
                peers.append(isolated(scip_mixture, problem, time_limit=SCIP_SECONDS))
        others = [run.refitted.log_map for run in peers]
        total += 1
        ahead += ours.log_map >= max(others) - 1e-9 * abs(ours.log_map)
        listed = ", ".join(f"{run.name} {run.refitted.log_map:.4f} ({run.seconds:.2f} s)" for run in peers)
        yield f"mixture values {name}: ours {ours.log_map:.4f} ({ours.statistics['seconds']:.2f} s), {listed}"
    yield f"mixture values: ours is not below any other in {ahead} of {total}"


def proofs() -> Iterator[str]:
    """Proofs to a relative gap of 0.1 % on one thread."""
    _warm_up()
    points = iris().points
    shuffled = shuffle(points, random_state=0)
    cases = [("iris 1 PC", points[:, :1], 3, "full"), ("iris 2 PCs", points[:, :2], 3, "full")]
    cases += [("iris 3 PCs", shuffled[:n], 3, "full") for n in (20, 40)]
    for data in (iris(), brca()):
        cases += [(data.name, data.points, data.n_clusters, kind) for kind in ("known", "spherical")]
    cases.append(("iris", points, 3, "diag"))
    within = {data.name: _within(data.points, np.asarray(data.labels)) for data in (iris(), brca())}
    for name, X, K, kind in cases:
        given = {"covariance_prior": within[name]} if kind == "known" else {}
        yield _proof_line(f"{name} {kind}", X, K, TOL, 1, 600.0, covariance_type=kind, **given)


def long_proof() -> Iterator[str]:
    """Iris, three components, full covariance, all points, on two threads."""
    _warm_up()
    yield _proof_line("iris 3 PCs full", iris().points, 3, 1.5e-3, 2, 1800.0)


def frontier() -> Iterator[str]:
    """More features than proofs can close: the bound that a limit leaves."""
    _warm_up()
    four = np.asarray(load_iris().data)
    yield _proof_line("iris 4 features full", four - four.mean(axis=0), 3, TOL, 2, 300.0)
    yield _proof_line("wine 6 PCs full", wine().points, 3, TOL, 2, 300.0)


def must_links() -> Iterator[str]:
    """Iris in the plane under nested must-links: values and bounds do not rise, work falls."""
    _warm_up()
    data = iris(2)
    for n in (0, 2, 4, 8, 16, 32):
        problem = data.problem(data.must_links(n, seed=0))
        result = solve_mixture(problem, tol=TOL)
        yield f"mixture must-links {n}: {_described(result, TOL)}"


def scale() -> Iterator[str]:
    """100,000 points, 10 features, 20 clusters: one start each, against scikit-learn's variational Bayes."""
    _warm_up()
    X = make_blobs(100_000, 10, centers=20, cluster_std=3.0, random_state=0)[0]
    K, prior = 20, NormalWishartPrior.from_data(X)
    problem = MixtureProblem.from_points(X, prior, K)
    started = time.perf_counter()
    ours = GaussianMixtureMAP(K, algorithm="local-search", n_init=1, random_state=0).fit(X)
    our_seconds = time.perf_counter() - started
    started = time.perf_counter()
    peer = BayesianGaussianMixture(
        n_components=K,
        n_init=1,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=prior.weight_concentration,
        mean_precision_prior=prior.mean_precision,
        degrees_of_freedom_prior=prior.degrees_of_freedom,
        covariance_prior=prior.covariance,
        random_state=0,
    )
    labels = peer.fit_predict(X)
    seconds = time.perf_counter() - started
    value = problem.log_map(np.asarray(labels, dtype=np.int64))
    yield (
        f"mixture scale N=100000 D=10 K=20: ours {ours.log_map_:.1f} in {our_seconds:.1f} s, scikit-learn "
        f"{value:.1f} in {seconds:.1f} s ({peer.n_iter_} iterations; ratio {our_seconds / seconds:.2f})"
    )


def _proof_line(name: str, X: np.ndarray, K: int, tol: float, threads: int, limit: float, **options: object) -> str:
    started = time.process_time()
    model = GaussianMixtureMAP(
        K, tol=tol, max_nodes=None, time_limit=limit, random_state=0, n_jobs=threads, device="cpu", **options
    ).fit(X)
    seconds = time.process_time() - started
    return f"mixture proof {name} N={len(X)}: {_described(model.result_, tol)}, {seconds:.2f} s of processor time"


def _described(result: Result, tol: float) -> str:
    gap = (result.upper_bound - result.log_map) / max(1.0, abs(result.log_map))
    return (
        f"{result.status.name} at {100 * tol:g} %, value {result.log_map:.4f} bound {result.upper_bound:.4f} "
        f"gap {100 * gap:.3f} %, {result.statistics['nodes']:.0f} nodes, {result.statistics['seconds']:.2f} s"
    )


def _value_cases() -> Iterator[tuple[str, np.ndarray, int, bool]]:
    for make in DATA_SETS.values():
        data = make()
        yield data.name, data.points, data.n_clusters, True
    yield "iris 4 features", _standard(load_iris().data), 3, False
    yield "wine 10 features", _standard(load_wine().data)[:, :10], 3, False
    yield "diabetes", _standard(load_diabetes().data)[:, [0, 2, 3, 4, 5]], 4, False
    yield "linnerud", _standard(load_linnerud().data), 2, False
    yield "digits", _standard(load_digits().data[:, [10, 20, 21, 27, 36, 43]]), 10, False
    sizes = (60, 100, 200, 300, 500, 800, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 150, 400)
    for seed, n in enumerate(sizes):
        D, K = 1 + seed % 10, 2 + seed % 5
        X = make_blobs(n, D, centers=K, cluster_std=2.0 + 0.3 * seed, random_state=seed)[0]
        yield f"blobs N={n} D={D} K={K}", X, K, False


def _standard(data: np.ndarray) -> np.ndarray:
    X = np.asarray(data, dtype=np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _within(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Covariance within the classes: what is taken as known."""
    kinds = np.unique(labels)
    return np.sum([np.cov(points[labels == k].T) * (labels == k).mean() for k in kinds], axis=0)


def _warm_up() -> None:
    """Compile before the clock starts."""
    GaussianMixtureMAP(2, random_state=0).fit(iris(2).points[::10])
