"""Tables in text files: comma, semicolon or tab between the cells, with a header line or without."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certimap.io.source import read_text
from certimap.model.errors import ModelError

DELIMITERS = ",;\t"


@dataclass(frozen=True)
class DelimitedTable:
    """Cells as text, with the line of the file that each row comes from.

    Without a header the columns are named "1", "2", ... A first row in which no cell is a number is a header.
    """

    path: Path
    names: tuple[str, ...]
    has_header: bool
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> tuple[str, ...]:
        """The cells of a column."""
        position = self._position(name)
        return tuple(row[position] for row in self.rows)

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The columns as finite numbers, shape (rows, columns)."""
        positions = [self._position(name) for name in names]
        values = np.empty((len(self.rows), len(names)))
        for i, row in enumerate(self.rows):
            for j, position in enumerate(positions):
                value = _number(row[position])
                if value is None or not math.isfinite(value):
                    raise self.error(i, f"column {names[j]!r}: expected a finite number, got {row[position]!r}")
                values[i, j] = value
        return values

    def error(self, row: int, what: str) -> ModelError:
        """An error that says where in the file it is."""
        return ModelError(f"{self.path}: line {self.lines[row]}, {what}")

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise ModelError(f"{self.path}: no column {name!r}; the columns are {', '.join(self.names)}")
        return self.names.index(name)


def read_delimited(path: Path, optional: int = 0, header: bool = True) -> DelimitedTable:
    """Read a table; empty lines are left out, and the last `optional` cells of a row may be missing.

    `header`: whether a first row without numbers is one.
    """
    text = read_text(path).removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "")
    reader = csv.reader(io.StringIO(text), delimiter=max(DELIMITERS, key=first.count), skipinitialspace=True)
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    for cells in reader:
        if any(cell.strip() for cell in cells):
            rows.append(tuple(cell.strip() for cell in cells))
            lines.append(reader.line_num)
    if not rows:
        raise ModelError(f"{path}: the table is empty")
    width = len(rows[0]) if optional == 0 else max(len(row) for row in rows)
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if not width - optional <= len(row) <= width:
            raise ModelError(f"{path}: line {line} has {len(row)} cells, expected {width}")
        rows[k] = row + ("",) * (width - len(row))
    if not header or any(_number(cell) is not None for cell in rows[0]):
        names = tuple(str(j + 1) for j in range(width))
        return DelimitedTable(path, names, False, tuple(rows), tuple(lines))
    names = rows[0]
    if len(set(names)) < width:
        repeated = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"{path}: line {lines[0]}, two columns are named {repeated!r}")
    if len(rows) == 1:
        raise ModelError(f"{path}: no rows below the header")
    return DelimitedTable(path, names, True, tuple(rows[1:]), tuple(lines[1:]))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
