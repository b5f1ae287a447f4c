"""The reproduction as a whole, of toy size."""

import csv
import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from tests.experiments.browser import opened

from certimap.baselines.scip import is_available
from certimap.experiments import mixture_parts, printed, settings, topic_parts, topic_tasks
from certimap.experiments.corpus import Collection
from certimap.experiments.data import DATA_SETS, DataSet
from certimap.experiments.made_up import made_up_texts
from certimap.experiments.methods import BRANCH_AND_BOUND, OURS
from certimap.experiments.reproduce import PARTS, reproduce
from certimap.experiments.settings import Settings

FIGURES = {
    *("convergence-gaps", "traces-weights", "traces-means-iris", "traces-means-wine", "traces-means-brca"),
    *("graphical-model-mixture", "factor-graph-mixture", "graphical-model-topics", "factor-graph-topics"),
}
TABLES = {
    *(f"{table}-{data}" for table in ("log-map", "voi", "running-time") for data in ("iris", "wine", "brca")),
    *(
        "data-sets",
        "must-link-table",
        "topic-log-map-table",
        "top-words-table",
        "top-words-printed",
        "perplexity-table",
    ),
}
ROUNDING = 1e-9


@dataclass(frozen=True)
class Run:
    """Where a reproduction was written, and how to run it again."""

    settings: Settings
    report: Path
    said: str

    def elsewhere(self, output: Path, names: Sequence[str]) -> "Run":
        """Another call of the same command that finds the same results."""
        shutil.copytree(self.settings.output / "results", output / "results")
        return run(replace(self.settings, output=output), names)


def run(given: Settings, names: Sequence[str] = tuple(PARTS)) -> Run:
    console = Console(file=io.StringIO(), soft_wrap=True)
    report = reproduce(given, names, console)
    return Run(given, report, console.file.getvalue())  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def toy_sizes() -> Iterator[None]:
    """A few points of every data set, two features, few documents and short searches."""
    with pytest.MonkeyPatch.context() as patch:
        for name, load in list(DATA_SETS.items()):
            patch.setitem(DATA_SETS, name, partial(_few, load()))
        patch.setattr(mixture_parts, "iris", lambda components: replace(DATA_SETS["iris"](), name="plane"))
        for links in (8, 32):
            patch.delitem(printed.MUST_LINK, links)
        patch.setattr(printed, "TOPIC_SIZES", (4, 11, 2))
        patch.setattr(printed, "PERPLEXITY_SIZES", (8, 12, 2))
        patch.setattr(printed, "HELD_OUT", 2)
        patch.setattr(settings, "STARTS", 40)
        patch.setattr(topic_tasks, "STARTS", 2)
        patch.setattr(topic_tasks, "VARIATIONAL_RUNS", 1)
        missing = Collection(made_up_texts(), "made-up documents", "20 Newsgroups could not be fetched.")
        patch.setattr(topic_parts, "collection", lambda data_home: missing)
        yield


@pytest.fixture(scope="module")
def toy_run(toy_sizes: None, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(Settings(tmp_path_factory.mktemp("reproduction"), quick=True, seconds=0.3))


def _few(data: DataSet) -> DataSet:
    assert data.labels is not None
    step = len(data.points) // 15
    points, names = data.points[::step, :2], data.feature_names[:2]
    return DataSet(data.name, points, data.labels[::step], data.n_clusters, names, "some of the points")


def rows(run: Run, name: str) -> list[dict[str, str]]:
    with (run.settings.output / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_and_figure_is_there(toy_run: Run) -> None:
    text = toy_run.report.read_text(encoding="utf-8")
    for id in (*PARTS, *FIGURES, *TABLES):
        assert f'id="{id}"' in text, id
    for said in (
        "The paper does not print its priors",
        "The paper&#39;s table contradicts itself",
        "order of the methods",
        "20 Newsgroups could not be fetched.",
        "Limit of this run: 0.3 s for each proof",
        "certimap reproduce --quick --seconds 0.3<",
    ):
        assert said in text, said
    for name in ("log_map", "voi", "agreement", "must_link", "running_time", "topic_log_map", "top_words", "traces"):
        assert f"<code>{name}.csv</code>" in text and rows(toy_run, f"{name}.csv")


def test_the_run_is_described(toy_run: Run) -> None:
    said = {row["name"]: row["value"] for row in rows(toy_run, "run.csv")}
    assert said["command"] == "certimap reproduce --quick --seconds 0.3" and said["seed"] == "0"
    assert said["limit"] == "0.3 s for each proof and for each branch and bound" and "numpy" in said["packages"]


def test_ours_is_at_least_each_baseline_in_every_row(toy_run: Run) -> None:
    for name, key in (("log_map.csv", "data"), ("topic_log_map.csv", ""), ("must_link.csv", "must_links")):
        column = "value" if name == "must_link.csv" else "refitted"
        found = rows(toy_run, name)
        ours = {row.get(key, ""): float(row[column]) for row in found if row["method"] == OURS}
        others = [row for row in found if row["method"] != OURS and row[column]]
        assert ours and (others or name == "must_link.csv")
        for row in others:
            value = ours[row.get(key, "")]
            assert value >= float(row[column]) - ROUNDING * abs(value), row


def test_bounds_are_above_every_value(toy_run: Run) -> None:
    found = rows(toy_run, "log_map.csv")
    certified = {row["data"]: float(row["bound"]) for row in found if row["bound_is"] == "certified"}
    assert set(certified) == {"iris", "wine", "brca"}
    for row in found:
        if row["refitted"]:
            assert float(row["refitted"]) <= certified[row["data"]] + ROUNDING


def test_must_link_values_and_bounds_never_rise(toy_run: Run) -> None:
    ours = [row for row in rows(toy_run, "must_link.csv") if row["method"] == OURS]
    assert [row["must_links"] for row in ours] == ["0", "2", "4", "16"]
    for column in ("value", "bound"):
        values = [float(row[column]) for row in ours]
        assert values == sorted(values, reverse=True), column


def test_the_same_command_goes_on_where_it_stopped(toy_run: Run, tmp_path: Path) -> None:
    again = toy_run.elsewhere(tmp_path / "whole", tuple(PARTS))
    assert again.said == "" and again.report.read_bytes() == toy_run.report.read_bytes()
    lost = next((again.settings.output / "results").glob("topics-gibbs-*.json"))
    kept = json.loads(lost.read_text())
    lost.unlink()
    again = again.elsewhere(tmp_path / "part", ("topic-log-map", "perplexity"))
    assert again.said.count("running") == 1 and "collapsed Gibbs sampler" in again.said
    recomputed = json.loads((again.settings.output / "results" / lost.name).read_text())
    assert recomputed["parameters"] == kept["parameters"]
    assert recomputed["result"]["topic_word"] == kept["result"]["topic_word"]


def test_one_table_alone(toy_run: Run, tmp_path: Path) -> None:
    only = toy_run.elsewhere(tmp_path / "one", ["running-time"])
    text = only.report.read_text(encoding="utf-8")
    assert 'id="running-time-iris"' in text and 'id="voi-iris"' not in text and only.said == ""
    assert "certimap reproduce --quick --table running-time --seconds 0.3<" in text
    assert sorted(path.name for path in only.settings.output.glob("*.csv")) == ["run.csv", "running_time.csv"]


def test_without_branch_and_bound(toy_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (mixture_parts, topic_parts):
        monkeypatch.setattr(module, "is_available", lambda: False)
    without = toy_run.elsewhere(tmp_path / "without", ["log-map", "must-link", "topic-log-map"])
    for name in ("log_map.csv", "must_link.csv", "topic_log_map.csv"):
        methods = {row["method"] for row in rows(without, name)}
        assert OURS in methods and BRANCH_AND_BOUND not in methods


@pytest.mark.skipif(not is_available(), reason="pyscipopt is not installed")
def test_branch_and_bound_has_its_rows(toy_run: Run) -> None:
    found = [row for row in rows(toy_run, "log_map.csv") if row["method"] == BRANCH_AND_BOUND]
    assert [row["data"] for row in found] == ["iris", "wine", "brca"]
    assert all(row["bound_is"] in ("claimed", "none") for row in found)


def test_report_in_a_browser(toy_run: Run, tmp_path: Path) -> None:
    page = opened(toy_run.report, "reproduction", tmp_path)
    assert page.errors == []
    assert set(page.images) == FIGURES and min(page.images.values()) > 300
    assert page.overflow == 0
    assert page.screenshot.stat().st_size > 100_000
