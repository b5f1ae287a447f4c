"""The mixture's tables, from records by hand."""

import numpy as np
from tests.experiments.records import record, three_methods

from certimap.experiments import printed
from certimap.experiments.data import DATA_SETS
from certimap.experiments.methods import BRANCH_AND_BOUND, OURS, VARIATIONAL
from certimap.experiments.mixture_sections import (
    log_map_section,
    must_link_section,
    nested,
    running_time_section,
    voi_section,
)
from certimap.report.document import Cell, Table

LABELS = {"iris": np.array([0, 0, 1, 1])}


def cells(table: object) -> dict[str, list[str]]:
    """Rows by their first cell, with the printed figure beside each."""
    assert isinstance(table, Table)
    texts = [[f"{c.text} {c.printed}".strip() if isinstance(c, Cell) else c for c in row] for row in table.rows]
    return {row[0]: row[1:] for row in texts}


def test_log_map_section_sets_both_papers_side_by_side() -> None:
    section = log_map_section({"iris": three_methods()}, {"iris": DATA_SETS["iris"]()})
    assert cells(section.parts[0])["iris"][:3] == ["150", "3", "3"]
    rows = cells(section.parts[1])
    assert rows[OURS] == ["2.000", "3.000 [-89.411]", "4.000 [-81.5]", "1.000", "certified"]
    assert rows[BRANCH_AND_BOUND][2:] == ["90.000 [230,925.3]", "–", "claimed"]
    assert "1 of 1 pairs agree" in section.remarks[1] and "priors" in section.paragraphs[0]
    lines = section.files[0].text().splitlines()
    assert lines[0].startswith("data,method,returned,refitted,bound") and len(lines) == 4
    assert lines[3] == f"iris,{OURS},2.0,3.0,4.0,certified,-89.411,-81.5"


def test_voi_section_lists_every_clustering_and_the_labels() -> None:
    section = voi_section({"iris": three_methods()}, LABELS)
    rows = cells(section.parts[0])
    assert rows["labels"] == ["0.000 [0.124]", "0.000 [0.149]"] and rows[VARIATIONAL] == ["", "0.000 [0.116]"]
    assert any(f"{VARIATIONAL} 100.0 %, {OURS} 100.0 %" in remark for remark in section.remarks)
    assert any("0.149 against 0.146 on iris" in remark for remark in section.remarks)
    assert [file.name for file in section.files] == ["voi.csv", "agreement.csv"]


def test_printed_distances_below_a_single_point_are_named() -> None:
    labels = {"wine": np.repeat([0, 1, 2], [59, 71, 48])}
    whole = [record(OURS, 0.0, 1.0, labels=labels["wine"].tolist())]
    remarks = voi_section({"wine": whole}, labels).remarks
    assert any("it prints 0.033 on wine" in remark and "is 0.056 away" in remark for remark in remarks)


def test_nested_solves_prove_things_about_each_other() -> None:
    solved = {
        0: record(OURS, 5.0, 9.0),
        2: record(OURS, 4.0, 9.5),
        4: record(OURS, 4.5, None, certified=False),
        8: record(OURS, 3.0, 6.0, labels=[1]),
    }
    carried = nested(solved)
    assert [carried[n].refitted for n in solved] == [5.0, 4.5, 4.5, 3.0]
    assert [carried[n].bound for n in solved] == [9.0, 9.0, 9.0, 6.0]
    assert all(carried[n].certified for n in solved) and carried[8].labels == [1]
    assert nested({0: record(OURS, 1.0)})[0].bound is None


def test_must_link_table_never_rises_and_says_what_is_taken_over() -> None:
    values, bounds = {0: 3.0, 2: 2.0, 4: 2.5}, {0: 4.0, 2: 4.5, 4: 3.9}
    records = {n: [record(OURS, values[n], bounds[n]), record(BRANCH_AND_BOUND, 1.0, 50.0)] for n in values}
    section = must_link_section(records)
    rows = cells(section.parts[0])
    assert list(rows) == ["0", "2", "4"]
    assert [row[0] for row in rows.values()] == ["3.000 [-89.411]", "2.500 [-90.146]", "2.500 [-90.146]"]
    assert [row[1] for row in rows.values()] == ["4.000 [-81.5]", "4.000 [-81.751]", "3.900 [-78.566]"]
    lines = section.files[0].text().splitlines()
    assert lines[3] == f"2,{OURS},2.5,4.0,certified,2.0,4.5,-90.146,-81.751"
    assert "the value with 2 links and the bound with 2 links" in section.remarks[1]
    for part in ("-89.055 with 16 must-links is above -89.411 without any", "-81.486 with 16"):
        assert part in section.remarks[0]
    alone = must_link_section({0: [record(OURS, 3.0, 4.0)]})
    assert alone.remarks[1] == "Every value and bound of certimap is that of its own solve."


def test_running_times_stand_beside_the_papers() -> None:
    rows = cells(running_time_section({"iris": three_methods()}).parts[0])
    assert rows[VARIATIONAL] == ["0.250 [0.064]", "none [n/a]"]
    assert rows[OURS] == ["0.250 [4,074.856]", "bounded, gap 1.000 nat, certified [epoch 2, iteration 6]"]


def test_the_paper_contradicts_itself_as_the_report_says() -> None:
    assert printed.MUST_LINK[16][printed.GBD][0] > printed.MUST_LINK[0][printed.GBD][0]
    assert printed.VOI["iris"]["Label", printed.GBD] > printed.VOI["iris"]["Label", printed.SAMPLER]
