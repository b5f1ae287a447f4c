"""Reports of tables and figures as one self-contained HTML file; needs the `[report]` extra."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from certimap.report.html import embedded, templates
from certimap.report.template import DOCUMENT

FIGURE = re.compile(r"[-–\d.,e+]*")  # a number, a dash or nothing


@dataclass(frozen=True)
class Cell:
    """One entry of a table: our figure, beside it the printed one where there is one, and whether it is the best."""

    text: str
    printed: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """How a column looks: figures are aligned to the right, printed figures have a column of their own beside ours."""

    head: str
    figures: bool
    printed: bool


@dataclass(frozen=True)
class Table:
    """The first column names the rows; the others hold figures or words."""

    id: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | str, ...], ...]

    def cells(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows, every entry a `Cell`."""
        return tuple(tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in self.rows)

    def layout(self) -> tuple[Column, ...]:
        """The look of each column, by what is in it."""
        columns = [[row[j] for row in self.cells()] for j in range(len(self.columns))]
        return tuple(
            Column(head, all(FIGURE.fullmatch(cell.text) for cell in cells), any(cell.printed for cell in cells))
            for head, cells in zip(self.columns, columns, strict=True)
        )


@dataclass(frozen=True)
class Picture:
    """A figure as a PNG image; `text` says what it shows to those who cannot see it."""

    id: str
    caption: str
    text: str
    png: bytes


@dataclass(frozen=True)
class DataFile:
    """The numbers of a table or figure for other programs."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int | None, ...], ...]

    def text(self) -> str:
        """As comma-separated values; an empty cell where there is no finite number."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_entry(cell) for cell in row] for row in self.rows)
        return buffer.getvalue()


@dataclass(frozen=True)
class Section:
    """A heading, sentences, tables and pictures, and the files with their numbers."""

    id: str
    title: str
    paragraphs: tuple[str, ...] = ()
    parts: tuple[Table | Picture, ...] = ()
    files: tuple[DataFile, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A report: what it is about, sections, and how to make it again."""

    title: str
    lead: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...] = field(default=())


def document_html(document: Document) -> str:
    """The whole document: nothing in it is loaded from elsewhere."""
    template = templates()
    template.tests["picture"] = lambda part: isinstance(part, Picture)
    template.filters["embedded"] = embedded
    template.filters["prose"] = _prose
    return template.from_string(DOCUMENT).render(title=document.title, document=document)


def _entry(cell: str | float | int | None) -> str | float | int:
    return "" if cell is None or (isinstance(cell, float) and not math.isfinite(cell)) else cell


def _prose(sentences: str) -> str:
    """Text with `code` between backquotes."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in sentences.split("`")]
    marked = [Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)]
    return Markup("").join(marked)


def best_of(values: Sequence[float], tolerance: float = 1e-6) -> list[bool]:
    """Which values are the largest, up to rounding."""
    top = max(values)
    return [value >= top - tolerance * max(1.0, abs(top)) for value in values]
