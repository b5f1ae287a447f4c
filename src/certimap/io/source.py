"""Reading whole numbers and floats from a text, with errors that say where in the file they stand."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certimap.model.errors import ModelError


def read_text(path: str | Path) -> str:
    """The text of a file; a file that cannot be read is reported as an error of the model."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise ModelError(f"{path}: cannot be read ({reason})") from None


class NumberStream:
    """The numbers of a text, read front to back. One array holds them all; lines are looked up for errors only."""

    def __init__(self, path: str | Path, text: str, skip: int = 0) -> None:
        """`skip` leaves out that many leading words, which are not numbers."""
        self.path = path
        self._text = text
        self._skip = skip
        self._next = 0
        words = text.split()[skip:]
        try:
            self.numbers: NDArray[np.float64] = np.array(words, dtype=np.float64)
        except ValueError:
            wrong = next(i for i, word in enumerate(words) if not _is_number(word))
            raise self.error(wrong, f"expected a number, got {words[wrong]!r}") from None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def position(self) -> int:
        """How many numbers have been read."""
        return self._next

    def take(self, count: int, what: str) -> NDArray[np.float64]:
        """The next `count` numbers."""
        left = len(self.numbers) - self._next
        if count > left:
            raise self.error(len(self.numbers), f"the file ends; {what} needs {count} more numbers, {left} are left")
        self._next += count
        return self.numbers[self._next - count : self._next]

    def counts(self, count: int, what: str, least: int, most: float = math.inf) -> list[int]:
        """The next `count` numbers, which must be whole and within least .. most."""
        start = self._next
        values = self.take(count, what)
        wrong = np.flatnonzero(~((values >= least) & (values <= most) & (values == np.floor(values))))
        if len(wrong):
            given = values[wrong[0]]
            allowed = f">= {least}" if most == math.inf else f"in {least}..{most:g}"
            raise self.error(start + int(wrong[0]), f"{what}: expected a whole number {allowed}, got {given:g}")
        return [int(v) for v in values]

    def count(self, what: str, least: int, most: float = math.inf) -> int:
        """The next number, which must be whole and within least .. most."""
        return self.counts(1, what, least, most)[0]

    def finish(self, what: str) -> None:
        """Refuse numbers after the end of the document."""
        if self._next < len(self.numbers):
            left = len(self.numbers) - self._next
            raise self.error(self._next, f"{left} numbers more than {what}")

    def error(self, position: int, message: str) -> ModelError:
        """An error that names the file, the line and the place of number `position` among the file's words."""
        word = position + self._skip
        for index, match in enumerate(re.finditer(r"\S+", self._text)):
            if index == word:
                line = self._text.count("\n", 0, match.start()) + 1
                return ModelError(f"{self.path}: line {line}, word {word + 1} of the file: {message}")
        return ModelError(f"{self.path}: at the end: {message}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
