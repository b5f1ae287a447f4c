"""Reports of tables and figures: nothing is loaded from elsewhere, nothing is left unescaped."""

import math
from html.parser import HTMLParser

import numpy as np
import pytest

from certimap.report import html
from certimap.report.document import Cell, DataFile, Document, Picture, Section, Table, best_of, document_html
from certimap.report.html import MissingExtraError
from certimap.report.trace_plots import Convergence, Trace, gap_plot, mean_traces, weight_traces

PNG = b"\x89PNG\r\n\x1a\n"
TABLE = Table("numbers", "some <numbers>", ("", "a", "b"), (("row", Cell("1.0", "[2.0]", strong=True), "–"),))
SECTION = Section(
    "first",
    "First & last",
    paragraphs=("Run `certimap verify <file>` again.",),
    parts=(TABLE, Picture("plot", "A plot", 'text with "quotes"', PNG)),
    files=(DataFile("numbers.csv", ("a", "b"), ((1.5, None), (math.inf, "x,y"))),),
    remarks=("a < b",),
)


class Outline(HTMLParser):
    """Ids, images and addresses of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href"):
                self.addresses.append(str(value))


def test_document_is_self_contained_and_escaped() -> None:
    text = document_html(Document("Title <1>", ("lead",), (("seed", "0"),), (SECTION,)))
    outline = Outline(text)
    assert outline.ids == ["first", "numbers", "plot", "reproduce-heading", "reproduce"]
    assert outline.addresses[0] == "#first" and outline.addresses[1].startswith("data:image/png;base64,")
    assert len(outline.addresses) == 2 and "http" not in text and "<script" not in text
    for part in (
        "<h1>Title &lt;1&gt;</h1>",
        "Run <code>certimap verify &lt;file&gt;</code> again.",
        "<strong>1.0</strong>",
        '<th class="printed">[paper]</th>',
        '<td class="printed">[2.0]</td>',
        "a &lt; b",
        "<code>numbers.csv</code>",
        "some &lt;numbers&gt;",
    ):
        assert part in text, part


def test_columns_of_figures_and_of_words() -> None:
    rows = (
        ("3d", Cell("1,234.5"), "–", "3d", Cell("", "[n/a]")),
        ("row", "-1.2e+07", "none", "2", ""),
    )
    layout = Table("t", "", ("", "a", "b", "c", "d"), rows).layout()
    assert [column.figures for column in layout] == [False, True, False, False, True]
    assert [column.printed for column in layout] == [False, False, False, False, True]


def test_files_hold_finite_numbers_only() -> None:
    assert SECTION.files[0].text() == 'a,b\n1.5,\n,"x,y"\n'


def test_best_values_are_marked_up_to_rounding() -> None:
    assert best_of([1.0, 2.0, 2.0 - 1e-9]) == [False, True, True]
    assert best_of([-math.inf, -5.0]) == [False, True]


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs matplotlib and jinja2"):
        document_html(Document("t", (), ()))


def test_figures_are_images() -> None:
    rng = np.random.default_rng(0)
    names = ("a", "price in $", r"$\no formula$", "d")
    two = Trace(rng.dirichlet(np.ones(2), size=20), rng.normal(size=(20, 2, 4)), 5, names)
    three = Trace(rng.dirichlet(np.ones(3), size=20), rng.normal(size=(20, 3, 1)), 5, ("a",))
    history = [[0.1, math.inf, 1.0], [0.2, 3.0, 1.0], [0.3, 1.0, 1.0]]
    searches = {name: Convergence(history, 0.1, {"other": 7.0}) for name in "abcd"}
    pictures = [
        weight_traces({r"$\first$.csv": two, "second": three}),
        mean_traces(two),
        mean_traces(three),
        gap_plot(searches),
        gap_plot({"a": Convergence([], 0.1, {}), "b": Convergence([[0.1, math.inf, 1.0]], 0.1, {})}),
    ]
    assert all(png.startswith(PNG) for png in pictures)
    assert mean_traces(two) == mean_traces(two)  # equal reports are equal files
