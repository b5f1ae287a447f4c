"""`certimap reproduce`: options, messages and exit codes; what it computes is tested in experiments."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from certimap.cli import reproduce as module
from certimap.cli.main import app
from certimap.experiments.settings import FULL_SECONDS, QUICK_SECONDS, Settings
from certimap.report import html

RUN = CliRunner()


def test_one_figure(tmp_path: Path) -> None:
    run = RUN.invoke(app, ["reproduce", "--table", "graphs", "--output", str(tmp_path / "out")])
    assert run.exit_code == 0, run.output
    assert f"report      {tmp_path / 'out' / 'report.html'}" in run.stdout
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert 'id="factor-graph-mixture"' in text and 'id="factor-graph-topics"' in text


def test_options_become_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Settings, list[str]]] = []

    def note(settings: Settings, names: list[str], console: object) -> Path:
        given.append((settings, names))
        return settings.output / "report.html"

    monkeypatch.setattr(module, "reproduce", note)
    options = ["--seed", "3", "--seconds", "7", "--data-home", str(tmp_path), "--output", str(tmp_path)]
    assert RUN.invoke(app, ["reproduce", *options, "--table", "voi", "--table", "voi"]).exit_code == 0
    assert given[0] == (Settings(tmp_path, False, 7.0, 3, tmp_path), ["voi"])
    assert RUN.invoke(app, ["reproduce", "--quick", "--output", str(tmp_path)]).exit_code == 0
    assert given[1][1] == list(module.PARTS) and given[1][0].effort.seconds == QUICK_SECONDS
    assert given[1][0].draws == 1 and Settings(tmp_path).effort.seconds == FULL_SECONDS


def test_unknown_table() -> None:
    run = RUN.invoke(app, ["reproduce", "--table", "table-1"])
    assert run.exit_code == 2
    assert "--table must be one of log-map, voi, must-link" in run.stderr and "got 'table-1'" in run.stderr


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    run = RUN.invoke(app, ["reproduce", "--quick", "--output", str(tmp_path)])
    assert run.exit_code == 2 and "pip install 'certimap[report]'" in run.stderr


def test_interruption_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "reproduce", stop)
    run = RUN.invoke(app, ["reproduce", "--quick", "--output", str(tmp_path)])
    assert run.exit_code == 130 and "finished tasks are kept" in run.stderr
