"""`certimap solve`: exit codes, files, and errors in one line."""

import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from certimap import Certificate, Model, Result, Status, StopReason, __version__, potts, table
from certimap.cli.main import app
from certimap.io import read_uai, write_uai

GARDEN = Path(__file__).parents[1] / "data" / "garden.bif"
RUN = CliRunner()


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    return Path(shutil.copy(GARDEN, tmp_path / "garden.bif"))


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Two variables that like to be equal; the best point is (1, 1)."""
    model = Model()
    a, b = model.categorical("a", 2), model.categorical("b", 2)
    model.add(potts(a, b, 1.0), table([a], [0.0, 0.5]))
    path = tmp_path / "chain.uai"
    write_uai(model, path)
    return path


def stopped(status: Status, stop: StopReason, upper_bound: float = 1.0) -> Result:
    return Result(None, -math.inf, upper_bound, status, stop, certificate=None)


def test_version_and_commands() -> None:
    assert RUN.invoke(app, ["--version"]).stdout == f"certimap {__version__}\n"
    shown = RUN.invoke(app, ["--help"]).stdout
    assert all(command in shown for command in ("solve", "verify", "demo"))


def test_bayesian_network(garden: Path) -> None:
    run = RUN.invoke(app, ["solve", str(garden)])
    assert run.exit_code == 0, run.output
    assert "4 discrete variables, 4 factors | gap target 1e-04 %  seed 0" in run.stdout
    assert "status      OPTIMAL" in run.stdout
    # dry, sprinkler on, no rain, wet grass: 0.6 * 0.7 * 0.8 * 0.9
    assert f"log_map     {math.log(0.6 * 0.7 * 0.8 * 0.9):.10g}" in run.stdout
    assert "  season = dry\n  sprinkler = on\n  rain = none\n  grass = wet\n" in run.stdout


def test_files(garden: Path, tmp_path: Path) -> None:
    evidence, certificate, solution = tmp_path / "seen.txt", tmp_path / "c.json", tmp_path / "answer.txt"
    evidence.write_text("grass = dry\n")
    options = ["--evidence", str(evidence), "--certificate", str(certificate), "--solution", str(solution)]
    run = RUN.invoke(app, ["solve", str(garden), *options, "--quiet"])
    assert run.exit_code == 0, run.output
    assert run.stdout.startswith("status      OPTIMAL")
    assert solution.read_text() == "season = dry\nsprinkler = off\nrain = none\ngrass = dry\n"
    proof = Certificate.load(certificate)
    assert (proof.source, proof.details["evidence"]) == ("garden.bif", "seen.txt")


def test_uai_solution(chain: Path, tmp_path: Path) -> None:
    solution = tmp_path / "chain.sol"
    assert RUN.invoke(app, ["solve", str(chain), "--solution", str(solution)]).exit_code == 0
    assert solution.read_text() == "1 1\n"


def test_infeasible_evidence_is_named(garden: Path, tmp_path: Path) -> None:
    evidence = tmp_path / "seen.txt"
    evidence.write_text("season = wet\nrain = >=5mm\ngrass = dry\n")
    run = RUN.invoke(app, ["solve", str(garden), "--evidence", str(evidence)])
    assert run.exit_code == 3, run.output
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("status")]
    assert "INFEASIBLE" in line
    assert "evidence rain = >=5mm" in line
    assert "evidence grass = dry" in line
    assert "evidence season" not in line


@pytest.mark.parametrize(
    ("result", "code", "text"),
    [
        (stopped(Status.UNKNOWN, StopReason.TIME), 4, "no feasible point found"),
        (stopped(Status.UNKNOWN, StopReason.INTERRUPTED), 130, "stopped: interrupted"),
    ],
)
def test_stops_without_an_answer(
    chain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: Result, code: int, text: str
) -> None:
    monkeypatch.setattr("certimap.cli.solve.solve", lambda *_, **__: result)
    certificate = tmp_path / "c.json"
    run = RUN.invoke(app, ["solve", str(chain), "--certificate", str(certificate)])
    assert run.exit_code == code
    assert text in run.stdout
    assert "no certificate written" in run.stdout
    assert not certificate.exists()


def test_options_reach_the_solver(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    def spy(model: Model, **options: object) -> Result:
        seen.update(options)
        return stopped(Status.UNKNOWN, StopReason.NODES)

    monkeypatch.setattr("certimap.cli.solve.solve", spy)
    options = "--gap 0.01 --max-nodes 5 --time-limit 2.5 --memory-limit 900 --seed 3 --algorithm gbd --jobs 2"
    RUN.invoke(app, ["solve", str(chain), *options.split(), "-q"])
    assert seen == {
        "gap": 0.01,
        "max_nodes": 5,
        "time_limit": 2.5,
        "memory_limit": 900.0,
        "seed": 3,
        "algorithm": "gbd",
        "n_jobs": 2,
        "callback": None,
    }


def test_wrong_models_are_one_line(chain: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.uai"
    damaged.write_text(chain.read_text().replace("2 2", "2 x", 1))
    run = RUN.invoke(app, ["solve", str(damaged)])
    assert run.exit_code == 2
    assert run.stderr == f"error: {damaged}: line 3, word 4 of the file: expected a number, got 'x'\n"
    assert run.stdout == ""


def test_wrong_usage(chain: Path, tmp_path: Path) -> None:
    other = tmp_path / "model.txt"
    other.write_text("")
    missing = str(tmp_path / "none" / "c.json")
    for arguments, message in [
        ([str(tmp_path / "none.uai")], "does not exist"),
        ([str(other)], "a model file ends in .uai or .bif, got '.txt'"),
        ([str(chain), "--gap", "-1"], "--gap"),
        ([str(chain), "--time-limit", "0"], "error: solve: time_limit must be positive"),
        ([str(chain), "--algorithm", "magic"], "--algorithm"),
        ([str(chain), "--certificate", missing], "does not exist"),
        ([str(chain), "--solution", str(tmp_path)], "Is a directory"),
    ]:
        run = RUN.invoke(app, ["solve", *arguments])
        assert run.exit_code == 2, run.output
        assert message in run.stderr, run.stderr
        assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_interrupt_keeps_the_answer(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = Model()
    x = model.categorical("x", 2, shape=(40, 40))
    for left, right in ((x[:, :-1], x[:, 1:]), (x[:-1], x[1:])):
        for a, b in zip(left.ravel(), right.ravel(), strict=True):
            model.add(potts(a, b, float(rng.normal())))
    path = tmp_path / "grid.uai"
    write_uai(model, path)
    command = [sys.executable, "-u", "-m", "certimap", "solve", str(path), "--solution", str(tmp_path / "grid.sol")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]  # the solve has begun
        os.kill(process.pid, signal.SIGINT)
        lines.extend(process.stdout)
    assert process.returncode == 130, lines
    assert any("stopped: interrupted" in line for line in lines)
    assert len(read_uai(path).variables) == len((tmp_path / "grid.sol").read_text().split())
