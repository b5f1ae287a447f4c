"""`certimap compare`: every method on a user's table."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from certimap.baselines.scip import is_available
from certimap.cli import compare as module
from certimap.cli.main import app
from certimap.report import html

RUN = CliRunner()
FAST = ["--seconds", "0.5", "--starts", "20"]


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "height,age"], "age"),
        (["--label-column", "age"], "age"),
        ([], "kind"),  # words are no numbers
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
