"""What tables share: how numbers are written, which method ranks where."""

import math

import numpy as np
import pytest
from tests.experiments.records import record, three_methods

from certimap.experiments.comparison import (
    LOG_MAP_COLUMNS,
    LOG_MAP_HEADS,
    agreement,
    beside,
    clusterings,
    distance_table,
    distances,
    figure,
    largest_remark,
    log_map_cells,
    log_map_rows,
    order,
    order_remark,
    same_order,
)
from certimap.experiments.methods import BRANCH_AND_BOUND, OURS, VARIATIONAL
from certimap.metrics import variation_of_information
from certimap.report.document import Cell


def test_figures_are_short_and_gaps_are_dashes() -> None:
    assert [figure(x) for x in (1.23456, -1234.5, 0.0)] == ["1.235", "-1,234.500", "0.000"]
    assert figure(123456789.0) == "1.235e+08" and figure(3.14159, 1) == "3.1"
    assert [figure(x) for x in (12345.678, 123456.78, -8813403.015)] == ["12,345.678", "123,456.8", "-8,813,403.0"]
    assert figure(123456.78, 0) == "123,457"
    assert [figure(x) for x in (None, math.inf, -math.inf, math.nan)] == ["–"] * 4
    assert beside(1.0, None) == Cell("1.000") and beside(1.0, -89.411, strong=True).printed == "[-89.411]"


def test_order_joins_ties() -> None:
    assert order({"a": 1.0, "b": 3.0, "c": 3.0 + 1e-9}) == "c = b > a"
    assert order({}) == ""
    assert same_order({"a": 1.0, "b": 2.0, "c": 0.0}, {"a": 5.0, "b": 6.0, "d": 1.0}) == (1, 1)
    assert same_order({"a": 1.0, "b": 2.0, "c": 0.0}, {"a": 5.0, "b": 4.0, "c": 4.5}) == (1, 3)
    assert same_order({"a": 1.0, "b": 1.0}, {"a": 5.0, "b": 4.0}) == (0, 1)  # a tie agrees with nothing


def test_log_map_cells_and_rows() -> None:
    printed = {"GBD": (-89.4, -81.5), "BNB": (-90.1, 230925.3)}
    rows = log_map_cells(three_methods(), printed)
    assert all(len(row) == len(LOG_MAP_HEADS) for row in rows)
    assert [row[2].strong for row in rows if isinstance(row[2], Cell)] == [False, False, True]
    assert rows[2] == (OURS, "2.000", Cell("3.000", "[-89.4]", True), Cell("4.000", "[-81.5]"), "1.000", "certified")
    assert rows[1][1:] == ("–", Cell("–", "[-90.1]"), Cell("90.000", "[230,925.3]"), "–", "claimed")
    assert rows[0][3:] == (Cell("–"), "–", "none")
    numbers = log_map_rows(three_methods(), printed)
    assert all(len(row) == len(LOG_MAP_COLUMNS) for row in numbers)
    assert numbers[2] == (OURS, 2.0, 3.0, 4.0, "certified", -89.4, -81.5)


def test_order_remark_compares_what_both_have() -> None:
    printed = {"GBD": (-1.0, None), "Var Bayes": (-2.0, None), "Sampler": (-3.0, None), "BNB": (-1.5, None)}
    said = order_remark("iris", three_methods(), printed)
    assert said == (
        f"iris, order of the methods: ours {OURS} > {VARIATIONAL}; the paper's GBD > Var Bayes. 1 of 1 pairs agree."
    )


def test_whoever_is_above_certimap_is_named() -> None:
    assert (
        largest_remark({"iris": three_methods(), "wine": three_methods()})
        == "No value is above certimap's, in any row."
    )
    lost = [record(OURS, 1.0), record(VARIATIONAL, 1.1)]
    assert largest_remark({"iris": lost, "wine": three_methods()}).endswith(f": {VARIATIONAL} on iris.")


def test_distances_between_clusterings() -> None:
    found = [
        record(OURS, 1.0),
        record(BRANCH_AND_BOUND, 1.0, labels=None),
        record(VARIATIONAL, 0.0, labels=[0, 1, 0, 1]),
    ]
    given = clusterings(found, np.array([1, 1, 0, 0]))
    assert list(given) == ["labels", OURS, VARIATIONAL]
    apart = distances(given)
    assert apart["labels", OURS] == 0.0 and apart[OURS, VARIATIONAL] == pytest.approx(2 * math.log(2))
    table = distance_table("t", "VoI", given, apart, {("labels", OURS): 0.1})
    assert table.columns == ("", OURS, VARIATIONAL)
    assert [row[0] for row in table.rows] == ["labels", OURS]
    assert table.rows[0][1] == Cell("0.000", "[0.1]") and table.rows[1][1] == Cell("")


def test_points_without_a_label_are_left_out() -> None:
    labels, found = np.array([0, 0, 1, 1, -1, -1]), np.array([5, 5, 2, 5, 2, 2])
    apart = distances(clusterings([record(OURS, 1.0, labels=found.tolist())], labels))
    assert apart["labels", OURS] == variation_of_information(labels[:4], found[:4]) > 0.0
    assert agreement(labels, found) == 0.75
