"""Every number in the README's tables stands in a CSV file of the run that it names."""

import csv
from pathlib import Path

import pytest

from certimap.experiments.printed import MUST_LINK

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")
DATA = ("iris", "wine", "brca")
METHODS = ("variational Bayes", "Gibbs, mode of bins", "Gibbs, best sample", "branch and bound", "certimap")

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(value: str, digits: int = 2) -> str:
    """A number as the README writes it."""
    return f"{float(value):,.{digits}f}" if value else "–"


def table(cells: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def log_map_lines() -> list[list[str]]:
    found = {(row["data"], row["method"]): row for row in rows("log_map.csv")}
    lines = []
    for method in METHODS:
        given = [found[data, method] for data in DATA]
        lines.append([method, *(shown(row["refitted"]) for row in given)])
        if any(row["bound"] for row in given):
            lines.append([f"upper bound, {given[0]['bound_is']}", *(shown(row["bound"]) for row in given)])
    return lines


def must_link_lines() -> list[list[str]]:
    found = {(row["must_links"], row["method"]): row for row in rows("must_link.csv")}
    lines = []
    for method in ("certimap", "branch and bound"):
        given = [found[str(links), method] for links in MUST_LINK]
        lines.append([method, *(shown(row["value"]) for row in given)])
        lines.append([f"upper bound, {given[0]['bound_is']}", *(shown(row["bound"]) for row in given)])
    return lines


def proved() -> str:
    """The end of the search on iris in the plane."""
    last = [row for row in rows("convergence.csv") if row["data"] == "iris, 2 components"][-1]
    return f"{shown(last['value'])}, no other above {shown(last['bound'])}, after {shown(last['seconds'], 1)} s"


@pytest.mark.parametrize("lines", [log_map_lines(), must_link_lines()], ids=["log-map", "must-link"])
def test_tables_are_those_of_the_files(lines: list[list[str]]) -> None:
    assert table(lines) in README, f"the README should have\n{table(lines)}"


def test_the_run_is_named() -> None:
    run = {row["name"]: row["value"] for row in rows("run.csv")}
    assert f"`{run['command']}`" in README and run["limit"].split(" s ")[0] + " seconds" in README
    assert run["machine"].endswith("cores")


def test_the_proof_in_the_plane_is_that_of_the_file() -> None:
    assert proved() in README, f"the README should have\n{proved()}"


def test_bounds_are_above_values_and_ours_is_never_below() -> None:
    for name, key, value in (("log_map.csv", "data", "refitted"), ("must_link.csv", "must_links", "value")):
        found = rows(name)
        ours = {row[key]: row for row in found if row["method"] == "certimap"}
        assert all(row["bound_is"] == "certified" for row in ours.values())
        for row in found:
            best, bound = float(ours[row[key]][value]), float(ours[row[key]]["bound"])
            assert bound >= best
            assert not row[value] or float(row[value]) <= best + 1e-9 * abs(best)
            assert row["method"] == "certimap" or not row["bound"] or float(row["bound"]) >= best - 1e-6 * abs(best)
