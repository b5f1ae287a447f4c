"""`certimap demo`: cluster the iris flowers under constraints, prove the answer, check the proof, write a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from certimap.cli.cluster import print_clustering
from certimap.cli.exits import Exit, exit_for, usage_errors
from certimap.cli.files import save_certificate
from certimap.cli.output import plain_console
from certimap.cli.verify import print_report
from certimap.estimators.gaussian_mixture import GaussianMixtureMAP
from certimap.mixture.record import CLUSTERING, problem_record
from certimap.report.clustering import ClusteringReport
from certimap.report.html import MissingExtraError, clustering_html, require_extra
from certimap.verification.checker import verify

COMPONENTS = 2
EVERY = 3  # flower of the 150: few enough for a proof in seconds
N_MUST, N_CANNOT = 8, 4  # links between flowers that an expert has looked at
LEAST_SIZE = 6
SEED = 3


def demo_command(
    output: Annotated[Path, typer.Option(help="Folder for certificate and report.", file_okay=False)] = Path("out"),
) -> None:
    """Cluster the iris flowers under constraints, with a proof."""
    console = plain_console()
    bunch = load_iris()
    species = np.asarray(bunch.target)[::EVERY]
    points = PCA(COMPONENTS, svd_solver="full").fit_transform(bunch.data)[::EVERY]
    must, cannot = expert_links(species)
    console.print(f"data        iris: {len(points)} flowers, {COMPONENTS} principal components; species are not shown")
    model = GaussianMixtureMAP(3, random_state=0, verbose=1)
    model.fit(points, must_link=must, cannot_link=cannot, min_cluster_size=LEAST_SIZE)
    certificate, page = output / "demo.json", output / "demo.html"
    summary = ClusteringReport(
        title="Clusters of the iris flowers",
        data=points,
        feature_names=tuple(f"PC {j + 1}" for j in range(COMPONENTS)),
        prior=model.prior_,
        constraints=model.constraints_,
        result=model.result_,
        tolerance=model.tol,
        seed=model.seed_,
        preparation=f"centred, {COMPONENTS} principal components",
        certificate_path=str(certificate),
        agreement={"adjusted Rand index with the species": float(adjusted_rand_score(species, model.labels_))},
    )
    print_clustering(console, summary)
    with usage_errors():
        output.mkdir(parents=True, exist_ok=True)
        save_certificate(console, model.certificate_, certificate, None, {CLUSTERING: problem_record(model.problem_)})
        try:
            require_extra()
            page.write_text(clustering_html(summary), encoding="utf-8")
            console.print(f"report      {page}")
        except MissingExtraError as error:
            console.print(f"no report written: {error}")
    if model.certificate_ is None:
        raise typer.Exit(exit_for(model.result_))
    console.print("\nthe certificate checked again, by code that shares nothing with the solver:")
    report = verify(model.certificate_, model.model(), seed=0)
    print_report(console, model.certificate_, report)
    raise typer.Exit(Exit.INTERRUPTED if exit_for(model.result_) is Exit.INTERRUPTED else Exit.ANSWERED)


def expert_links(species: NDArray[np.int64]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs of flowers of one species to put together, pairs of the two that overlap to keep apart."""
    rng = np.random.default_rng(SEED)
    groups = [np.flatnonzero(species == k) for k in range(3)]
    must = [rng.choice(groups[k % 3], 2, replace=False).tolist() for k in range(N_MUST)]
    cannot = [(int(rng.choice(groups[1])), int(rng.choice(groups[2]))) for _ in range(N_CANNOT)]
    return [(i, j) for i, j in must], cannot
