"""Reports of tables and figures as one self-contained HTML file; needs the `[report]` extra."""

from __future__ import annotations

import base64
import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from certimap.report.html import require_extra
from certimap.report.template import DOCUMENT


@dataclass(frozen=True)
class Cell:
    """One entry of a table: our figure, beside it the printed one where there is one, and whether it is the best."""

    text: str
    printed: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """The first column names the rows; the others are figures, aligned to the right, unless `prose` is set."""

    id: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | str, ...], ...]
    prose: bool = False


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
    require_extra()
    from jinja2 import Environment, StrictUndefined

    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template.tests["picture"] = lambda part: isinstance(part, Picture)
    template.tests["text"] = lambda cell: isinstance(cell, str)
    template.filters["embedded"] = embedded
    template.filters["prose"] = _prose
    return template.from_string(DOCUMENT).render(document=document)


def _entry(cell: str | float | int | None) -> str | float | int:
    return "" if cell is None or (isinstance(cell, float) and not math.isfinite(cell)) else cell


def _prose(sentences: str) -> str:
    """Text with `code` between backquotes."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in sentences.split("`")]
    marked = [Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts)]
    return Markup("").join(marked)


def embedded(png: bytes) -> str:
    """An image as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def best_of(values: Sequence[float], tolerance: float = 1e-6) -> list[bool]:
    """Which values are the largest, up to rounding."""
    top = max(values)
    return [value >= top - tolerance * max(1.0, abs(top)) for value in values]
