"""`certimap compare`: every method on a user's table."""

import csv
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from tests.experiments.browser import opened
from typer.testing import CliRunner

from certimap.baselines.scip import is_available
from certimap.cli import compare as module
from certimap.cli.main import app
from certimap.report import html

RUN = CliRunner()
FAST = ["--seconds", "0.5", "--starts", "20"]


@pytest.fixture(autouse=True)
def nothing_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests have the second core."""
    monkeypatch.setattr(module, "compiled_ahead", lambda warm_ups: nullcontext())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    kinds = np.repeat(["oak", "fir"], 8)
    points = rng.normal(size=(16, 2)) + 4.0 * (kinds == "oak")[:, None]
    path = tmp_path / "trees.csv"
    rows = "".join(f"{x},{y},{kind}\n" for (x, y), kind in zip(points, kinds, strict=True))
    path.write_text(f"height,width,kind\n{rows}")
    return path


def test_methods_are_compared_with_the_labels(table: Path, tmp_path: Path) -> None:
    page, numbers = tmp_path / "r.html", tmp_path / "n.csv"
    options = ["--label-column", "kind", "--report", str(page), "--output", str(numbers)]
    run = RUN.invoke(app, ["compare", str(table), "-k", "2", *FAST, *options])
    assert run.exit_code == 0, run.output
    assert f"data        {table}: 16 rows; height, width" in run.stdout
    head = next(line for line in run.stdout.splitlines() if "log MAP" in line)
    assert head.split() == ["log", "MAP", "bound", "gap", "seconds", "VoI", "agreement"]
    assert "…" not in run.stdout
    assert ("* claimed by the solver" in run.stdout) == is_available()
    with numbers.open(newline="") as file:
        found = {row["method"]: row for row in csv.DictReader(file)}
    assert len(found) == 4 + is_available()
    ours = found["certimap"]
    assert ours["bound_is"] == "certified" and float(ours["bound"]) >= float(ours["refitted"])
    assert all(float(row["refitted"]) <= float(ours["refitted"]) + 1e-9 for row in found.values() if row["refitted"])
    assert (ours["voi_to_labels"], ours["agreement"]) == ("0.0", "1.0")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "Methods compared on trees.csv" in text
    for id in ("comparison", "distances-table", "convergence-gaps", "traces-weights", "traces-means-trees.csv"):
        assert f'id="{id}"' in text, id


def test_report_in_a_browser(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    run = RUN.invoke(app, ["compare", str(table), "-k", "2", *FAST, "--label-column", "kind", "--report", str(page)])
    assert run.exit_code == 0, run.output
    seen = opened(page, "comparison", tmp_path)
    assert seen.errors == [] and seen.overflow == 0
    assert set(seen.images) == {"convergence-gaps", "traces-weights", "traces-means-trees.csv"}
    assert min(seen.images.values()) > 300


def test_without_labels_and_branch_and_bound(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_available", lambda: False)
    monkeypatch.setattr("certimap.experiments.compare.is_available", lambda: False)
    page = tmp_path / "r.html"
    run = RUN.invoke(
        app, ["compare", str(table), "-k", "2", *FAST, "--columns", "height,width", "--pca", "1", "--report", str(page)]
    )
    assert run.exit_code == 0, run.output
    assert "without branch and bound: pyscipopt is not installed" in run.stdout
    assert "VoI" not in run.stdout and "branch and bound " not in run.stdout.split("installed")[1]
    assert "VoI to labels" not in page.read_text(encoding="utf-8")


def test_rows_without_a_class_and_points_beyond_the_proofs(tmp_path: Path) -> None:
    path, page = tmp_path / "few.csv", tmp_path / "r.html"
    rng = np.random.default_rng(0)
    kinds = ["a", "?", "-1", "", "a", "-1", "a", "-1", "a", "-1", "a", "-1"]
    rows = [",".join([*(f"{x:.3f}" for x in rng.normal(size=7)), kind]) for kind in kinds]
    path.write_text("\n".join(["f1,f2,f3,f4,f5,f6,f7,kind", *rows]))
    options = ["--label-column", "kind", "--report", str(page)]
    run = RUN.invoke(app, ["compare", str(path), "-k", "2", *FAST, *options])
    assert run.exit_code == 0, run.output
    assert "certimap's proofs reach 6 features and 2,000 points: there is no bound here" in run.stdout
    text = page.read_text(encoding="utf-8")
    assert "2 classes that no method sees, unknown for 2 of 12 points" in text
    assert "No value is above certimap&#39;s" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,c\n1,7\n2,7\n3,7\n4,7\n", "constant in c: choose others by --columns"),
        ("x,y\n1,2\n2,4\n3,6\n4,8\n", "x, y are linearly dependent on the 4 rows"),
        ("x,y\n1,2\n", "expected at least two rows, got 1"),
        ("x,y\n1,2\n3,1\n5,7\n", "--clusters must be at most 3, the number of rows of"),
        ("x,y\n1,2\n3,\n5,7\n4,4\n", "line 3, column 'y': expected a finite number, got ''"),
        ("x,y\n1,2\n3,nan\n5,7\n4,4\n", "expected a finite number, got 'nan'"),
        ("", "the table is empty"),
        ("x,y\n", "no rows below the header"),
    ],
)
def test_tables_that_cannot_be_clustered(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(text)
    run = RUN.invoke(app, ["compare", str(path), "-k", "4", *FAST])
    assert run.exit_code == 2 and message in run.stderr, run.output
    assert run.stderr.startswith("error: ") and run.stderr.count("\n") == 1 and "running" not in run.stdout


def test_one_column(tmp_path: Path) -> None:
    path = tmp_path / "line.csv"
    path.write_text("x\n1\n2\n3\n11\n12\n13\n")
    run = RUN.invoke(app, ["compare", str(path), "-k", "2", *FAST])
    assert run.exit_code == 0 and "6 rows; x: as given" in run.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "height,age"], "age"),
        (["--label-column", "age"], "age"),
        ([], "kind"),  # words are no numbers
        (["--columns", "height,kind", "--label-column", "kind"], "--columns must not name 'kind'"),
        (["--columns", "height,width", "--report", "nowhere/r.html"], "the folder"),
    ],
)
def test_wrong_usage_is_one_line(table: Path, options: list[str], message: str) -> None:
    run = RUN.invoke(app, ["compare", str(table), "-k", "2", *FAST, *options])
    assert run.exit_code == 2 and message in run.stderr
    assert run.stderr.startswith("error: ") and run.stderr.count("\n") == 1


def test_missing_extra_is_said_before_the_work(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    run = RUN.invoke(app, ["compare", str(table), "-k", "2", "--report", str(tmp_path / "r.html")])
    assert run.exit_code == 2 and "pip install 'certimap[report]'" in run.stderr and "running" not in run.stdout


def test_interruption(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "compare", stop)
    run = RUN.invoke(app, ["compare", str(table), "-k", "2", "--columns", "height,width"])
    assert run.exit_code == 130 and "interrupted before all methods were done" in run.stderr
