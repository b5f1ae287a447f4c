"""`certimap verify` and `certimap demo`: certificates are found, checked and refused."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from certimap import Certificate
from certimap.cli.main import app

GARDEN = Path(__file__).parents[1] / "data" / "garden.bif"
RUN = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model, evidence, and a certificate one level deeper."""
    home = tmp_path / "home"
    (home / "proofs").mkdir(parents=True)
    shutil.copy(GARDEN, home / "garden.bif")
    (home / "seen.txt").write_text("grass = dry\n")
    run = RUN.invoke(
        app,
        [
            "solve",
            str(home / "garden.bif"),
            "--evidence",
            str(home / "seen.txt"),
            "--certificate",
            str(home / "proofs" / "c.json"),
            "--quiet",
        ],
    )
    assert run.exit_code == 0, run.output
    return home


def test_certificate_finds_its_model_even_after_a_move(folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "elsewhere")
    run = RUN.invoke(app, ["verify", str(moved / "proofs" / "c.json")])
    assert run.exit_code == 0, run.output
    assert re.match(r"VERIFIED    OPTIMAL  gap .* <= 1e-04 %  branch-and-cut", run.stdout)
    assert "checked     1 node, 1 leaf, " in run.stdout


def test_model_given_by_hand(folder: Path) -> None:
    certificate, model, evidence = folder / "proofs" / "c.json", folder / "garden.bif", folder / "seen.txt"
    options = ["--model", str(model), "--evidence", str(evidence)]
    assert RUN.invoke(app, ["verify", str(certificate), *options]).exit_code == 0
    run = RUN.invoke(app, ["verify", str(certificate), "--model", str(model)])
    assert run.exit_code == 1
    assert run.stdout.startswith("REJECTED")


def test_false_claim_is_rejected(folder: Path) -> None:
    path = folder / "proofs" / "c.json"
    proof = Certificate.load(path)
    replace(proof, upper_bound=proof.upper_bound - 0.5).save(path)
    run = RUN.invoke(app, ["verify", str(path)])
    assert run.exit_code == 1
    assert run.stdout.startswith("REJECTED")


def test_other_model_is_rejected(folder: Path) -> None:
    model = folder / "garden.bif"
    model.write_text(model.read_text().replace("0.6, 0.4", "0.61, 0.39"))
    assert RUN.invoke(app, ["verify", str(folder / "proofs" / "c.json")]).exit_code == 1


def test_damaged_file_is_rejected(folder: Path) -> None:
    path = folder / "proofs" / "c.json"
    path.write_text(path.read_text()[:-20])
    run = RUN.invoke(app, ["verify", str(path)])
    assert run.exit_code == 1
    assert "not a JSON document" in run.stdout


def test_wrong_usage(folder: Path) -> None:
    path = folder / "proofs" / "c.json"
    run = RUN.invoke(app, ["verify", str(path), "--evidence", str(folder / "seen.txt")])
    assert (run.exit_code, run.stderr) == (
        2,
        "error: --evidence needs --model; a certificate names its own evidence file\n",
    )
    replace(Certificate.load(path), source=None).save(path)
    run = RUN.invoke(app, ["verify", str(path)])
    assert run.exit_code == 2
    assert "names no model file; give it with --model" in run.stderr


def test_demo(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run = RUN.invoke(app, ["demo", "--output", str(folder)])
    assert run.exit_code == 0, run.output
    assert "status      OPTIMAL" in run.stdout
    assert "constraints 13 of 13 hard constraints satisfied" in run.stdout
    assert "VERIFIED    OPTIMAL" in run.stdout
    assert Certificate.load(folder / "demo.json").status == "OPTIMAL"
    assert (folder / "demo.html").read_text().startswith("<!DOCTYPE html>")


def test_certificate_of_a_clustering_carries_its_problem(tmp_path: Path) -> None:
    """As `cluster` writes it, and with a changed point, which is another problem."""
    data, path = tmp_path / "points.csv", tmp_path / "c.json"
    data.write_text("x\n" + "\n".join(str(v) for v in (0.1, 0.3, 0.2, 4.0, 4.4, 4.1, 9.0)))
    links = tmp_path / "links.csv"
    links.write_text("0,1\n0,3,0.5\n")
    apart = tmp_path / "apart.csv"
    apart.write_text("2,6\n0,1,0.25\n")
    options = ["--must-link", str(links), "--cannot-link", str(apart), "--min-size", "1", "--certificate", str(path)]
    run = RUN.invoke(app, ["cluster", str(data), "-k", "2", "--starts", "6", *options])
    assert run.exit_code == 0, run.output
    data.unlink()
    run = RUN.invoke(app, ["verify", str(path), "--full"])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith(
        "model       Gaussian mixture of the 7 points of 1 feature that the certificate carries"
    )
    assert "VERIFIED    OPTIMAL" in run.stdout
    proof = Certificate.load(path)
    record = dict(proof.details["clustering"])
    record["data"] = record["data"] + 1e-9
    for changed in (record, {"data": record["data"]}):
        replace(proof, details={**proof.details, "clustering": changed}).save(path)
        run = RUN.invoke(app, ["verify", str(path)])
        assert run.exit_code == 1
        assert "REJECTED" in run.stdout
