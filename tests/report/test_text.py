"""Numbers as readers see them."""

import math

import pytest

from certimap.report.text import number, percent, plural

INF = math.inf


@pytest.mark.parametrize(
    ("relative", "text"),
    [
        (0.0, "0.00 %"),
        (0.02144, "2.14 %"),
        (1e-4, "0.01 %"),
        (1e-8, "1e-06 %"),
        (2e3, "large"),
        (INF, "-"),
        (math.nan, "-"),
    ],
)
def test_percent(relative: float, text: str) -> None:
    assert percent(relative) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (INF, "inf"),
        (-INF, "-"),
        (-2.5, "-2.5000"),
        (-1e-9, "0.0000"),
        (12721.31787, "12721.3179"),
        (-3e7, "-3.00000e+07"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


def test_plural() -> None:
    assert [plural(count, "leaf") for count in (0, 1, 2)] == ["0 leaves", "1 leaf", "2 leaves"]
