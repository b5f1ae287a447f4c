"""`certimap cluster`: tables in, clusters, reports and exit codes out."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from typer.testing import CliRunner

from certimap import Result, Status, StopReason
from certimap.cli.main import app
from certimap.mixture.solve import solve_mixture

RUN = CliRunner()
FAST = ["--starts", "6", "--max-nodes", "1"]


@pytest.fixture(scope="module")
def iris(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Petal sizes with the species, and two known ones."""
    data = load_iris()
    lines = ["length,width,species,known"]
    for i, (row, kind) in enumerate(zip(data.data[:, 2:], data.target, strict=True)):
        known = {0: "setosa", 70: "versicolor"}.get(i, "")
        lines.append(f"{row[0]},{row[1]},{data.target_names[kind]},{known}")
    path = tmp_path_factory.mktemp("data") / "iris.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def clusters_in(path: Path) -> list[int]:
    header, *rows = path.read_text().splitlines()
    assert header == "row,cluster"
    assert [int(row.split(",")[0]) for row in rows] == list(range(len(rows)))
    return [int(row.split(",")[1]) for row in rows]


def test_constrained_clustering(iris: Path, tmp_path: Path) -> None:
    together, apart = tmp_path / "ml.csv", tmp_path / "cl.csv"
    together.write_text("0,5\n50,77,0.5\n")
    apart.write_text("i;j;weight\n0;120;\n60;140;2\n")
    page, labels, proof = tmp_path / "r.html", tmp_path / "l.csv", tmp_path / "c.json"
    options = ["--label-column", "species", "--known-labels", "known", "--min-size", "20", "--max-size", "70"]
    options += ["--must-link", str(together), "--cannot-link", str(apart)]
    options += ["--report", str(page), "--output", str(labels), "--certificate", str(proof)]
    run = RUN.invoke(app, ["cluster", str(iris), "-k", "3", *FAST, *options])
    assert run.exit_code == 0, run.output
    assert f"{iris}: 150 rows, header; length, width: as given" in run.stdout
    heading = "1 must-link, 1 cannot-link, 1 soft must-link, 1 soft cannot-link, 2 known, sizes 20..70"
    assert f"mixture  N=150 D=2 K=3  full covariance | {heading} | gap target 0.10 %  seed 0" in run.stdout
    assert "cluster  points  weight  mean length  mean width" in run.stdout
    assert "constraints 5 of 5 hard constraints satisfied" in run.stdout
    assert "adjusted Rand index with species: 0." in run.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    z = clusters_in(labels)
    assert z[0] == z[5] == 0  # names of known clusters are numbered in alphabetical order
    assert z[70] == 1
    assert z[0] != z[120]
    assert all(20 <= size <= 70 for size in np.bincount(z))
    assert proof.exists() == ("no certificate written" not in run.stdout)


def test_prepared_data(tmp_path: Path) -> None:
    path = tmp_path / "wine.csv"
    np.savetxt(path, load_wine().data, delimiter=";")
    run = RUN.invoke(app, ["cluster", str(path), "-k", "3", "--standardize", "--pca=2", "--columns=1, 2,7", *FAST])
    assert run.exit_code == 0, run.output
    assert "178 rows, no header; 1, 2, 7: standardized, 2 principal components (" in run.stdout
    assert "mean PC 1" in run.stdout


def test_ranking(tmp_path: Path) -> None:
    path, page, proof = tmp_path / "x.csv", tmp_path / "r.html", tmp_path / "c.json"
    np.savetxt(path, np.concatenate([np.arange(9.0), 20.0 + np.arange(8.0)]) ** 0.9)
    options = ["--top", "3", "--report", str(page), "--certificate", str(proof), "-q"]
    run = RUN.invoke(app, ["cluster", str(path), "-k", "2", "--starts", "6", *options])
    assert run.exit_code == 0, run.output
    assert "rank         log_map  difference  points moved\n   1 " in run.stdout
    assert "Every other clustering has a log-posterior of at most -" in run.stdout
    assert '<table id="ranking">' in page.read_text()
    assert (
        "ranking     the best 3 clusterings; every other one has at most -"
        in RUN.invoke(app, ["verify", str(proof)]).stdout
    )


def test_quiet(iris: Path) -> None:
    run = RUN.invoke(app, ["cluster", str(iris), "-k", "2", "--columns", "length", "--covariance", "tied", "-q", *FAST])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("status      ")
    assert "Src" not in run.stdout


def test_infeasible_links_are_named(iris: Path, tmp_path: Path) -> None:
    apart = tmp_path / "cl.csv"
    apart.write_text("0,1\n1,2\n0,2\n5,6\n")
    options = ["--columns", "length,width", "--cannot-link", str(apart), "-q"]
    run = RUN.invoke(app, ["cluster", str(iris), "-k", "2", *options])
    assert run.exit_code == 3
    assert "These exclude each other: cannot_link (0, 1); cannot_link (0, 2); cannot_link (1, 2)." in run.stderr
    assert "Traceback" not in run.stderr


def test_interrupted(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> Result:
        return Result(None, -np.inf, np.inf, Status.UNKNOWN, StopReason.INTERRUPTED, None)

    monkeypatch.setattr("certimap.estimators.gaussian_mixture.solve_mixture", interrupted)
    run = RUN.invoke(app, ["cluster", str(iris), "-k", "2", "--columns", "length"])
    assert run.exit_code == 130
    assert "not proved that there is none" in run.stderr


def test_options_reach_the_solver(iris: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def spy(problem: object, **options: object) -> Result:
        seen.update(options)
        return solve_mixture(problem, n_init=1, algorithm="local-search")  # type: ignore[arg-type]

    monkeypatch.setattr("certimap.estimators.gaussian_mixture.solve_mixture", spy)
    options = (
        "--tol 0.01 --max-nodes 5 --time-limit 2.5 --starts 9 --seed 3 --jobs 2 --device cpu --top 4 --columns length"
    )
    assert RUN.invoke(app, ["cluster", str(iris), "-k", "2", *options.split()]).exit_code == 0
    del seen["callback"]
    expected = {"tol": 0.01, "max_nodes": 5, "time_limit": 2.5, "n_init": 9, "seed": 3, "n_jobs": 2}
    assert seen == {**expected, "algorithm": "auto", "device": "cpu", "n_top": 4}


def test_wrong_usage(iris: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = tmp_path / "links.csv"
    for content, options, message in [
        ("", [], "line 2, column 'species': expected a finite number, got 'setosa'"),
        ("", ["--columns", "length,depth"], "no column 'depth'; the columns are length, width, species, known"),
        ("", ["--label-column", "kind"], "no column 'kind'"),
        ("", ["--known-labels", "species"], "column 'species' names 3 clusters (setosa, versicolor, virginica), "),
        ("0,1,2,3", ["--must-link", str(links)], "links have two columns, or three with a weight; got 4"),
        ("i,j\n0,1\n0,150", ["--must-link", str(links)], "line 3, expected two different rows of the data, 0..149"),
        ("0,1,-2", ["--must-link", str(links)], "line 1, expected a weight >= 0 or nothing in the third column"),
        ("0,1,x", ["--must-link", str(links)], "line 1, expected a weight >= 0 or nothing in the third column"),
        ("", ["--must-link", str(links)], "the table is empty"),
        ("", ["--pca", "7"], "--pca must be in 1..2, got 7"),
        ("", ["--min-size", "80"], "min_cluster_size must be at most 75, got 80"),
        ("", ["--time-limit", "-1"], "time_limit must be positive"),
        ("", ["--covariance", "banded"], "--covariance"),
        ("", ["--report", str(tmp_path / "none" / "r.html")], "does not exist"),
        ("", ["--output", str(tmp_path)], "Is a directory"),
    ]:
        links.write_text(content)
        columns = [] if not options else ["--columns", "length,width"]
        run = RUN.invoke(app, ["cluster", str(iris), "-k", "2", *columns, *options, *FAST])
        assert run.exit_code == 2, (options, run.output)
        assert message in run.stderr, run.stderr
        assert "Traceback" not in run.stderr
    constant = tmp_path / "constant.csv"
    constant.write_text("a,b\n1,2\n1,3\n1,5\n")
    run = RUN.invoke(app, ["cluster", str(constant), "-k", "2", "--standardize"])
    assert "column 'a' is constant and cannot be standardized" in run.stderr
    monkeypatch.setattr("certimap.report.html.find_spec", lambda name: None)
    run = RUN.invoke(app, ["cluster", str(iris), "-k", "2", "--report", str(tmp_path / "r.html")])
    assert (run.exit_code, run.stdout) == (2, "")
    assert "pip install 'certimap[report]'" in run.stderr
