"""CSV tables with a header, read row by row with checked values."""

import csv
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synergy_core.model.names import nearest
from synergy_simulator.inputs.errors import InputError, InputLocation

MOST = 1e15
"""No number of a table is larger: beyond it, seconds and steps lose their units to rounding."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table. Each getter raises InputError that names line and column."""

    file: str
    line: int
    values: Mapping[str, str]

    def text(self, column: str) -> str:
        """A value that must not be empty."""
        value = self.values[column]
        if not value:
            raise self.bad(column, "is empty; give a value")
        return value

    def has(self, column: str) -> bool:
        """Whether the table has the column, and this line a value in it."""
        return bool(self.values.get(column))

    def number(self, column: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
        """A number within MOST and above, or at least, a bound."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise self.bad(column, f"must be a number, is {text!r}") from None
        if not math.isfinite(value):
            raise self.bad(column, f"must be a finite number, is {text!r}")
        if abs(value) > MOST:
            raise self.bad(column, f"must be within {MOST:g}, is {text}")
        if value < least:
            raise self.bad(column, f"must be at least {least:g}, is {text}")
        if value <= above:
            raise self.bad(column, f"must be above {above:g}, is {text}")
        return value

    def count(self, column: str, *, least: int = 1) -> int:
        """A whole number."""
        value = self.number(column, least=least)
        if value != int(value):
            raise self.bad(column, f"must be a whole number, is {self.text(column)}")
        return int(value)

    def bad(self, column: str, problem: str) -> InputError:
        """An error about this line."""
        return InputError(InputLocation(self.file, self.line, column), problem)


def read_text(path: Path) -> str:
    """A file's text; raises InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(InputLocation(str(path)), f"is not UTF-8 text: byte {error.start}") from None
    except OSError as error:
        raise InputError(
            InputLocation(str(path)), f"cannot be read: {error.strerror}; give the path of a file"
        ) from None


class Table:
    """A CSV file with a header; where `columns` are given, one without, and with tabs between the values."""

    def __init__(self, path: Path, columns: Sequence[str] | None = None, *, text: str | None = None) -> None:
        """`text` is what the file has, where it is known already."""
        self._file = str(path)
        self._lines = (read_text(path) if text is None else text).splitlines()
        self._delimiter, self._first = (",", 2) if columns is None else ("\t", 1)
        header = next(csv.reader(self._lines[:1]), []) if columns is None else columns
        self.columns = [name.strip() for name in header]
        if not any(self.columns):
            raise InputError(InputLocation(self._file, 1), "is empty; the first line must name the columns")
        for index, name in enumerate(self.columns):
            if name in self.columns[:index]:
                raise InputError(InputLocation(self._file, 1, name), "occurs twice; name each column once")

    def require(self, needed: Collection[str], allowed: Collection[str]) -> None:
        """Raise InputError where a needed column is missing or one is there that is not known."""
        for name in needed:
            if name not in self.columns:
                raise InputError(InputLocation(self._file, 1, name), "column is missing; add it")
        for name in self.columns:
            if name not in allowed:
                meant = nearest(name, allowed)
                suggestion = "" if meant is None else f"did you mean {meant!r}? "
                problem = f"unknown column; {suggestion}remove it, or use one of {', '.join(allowed)}"
                raise InputError(InputLocation(self._file, 1, name), problem)

    def rows(self) -> Iterator[Row]:
        """The lines that are not empty."""
        reader = csv.reader(self._lines[self._first - 1 :], delimiter=self._delimiter)
        for cells in reader:
            line = reader.line_num + self._first - 1
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(self.columns):
                problem = f"has {len(cells)} values for {len(self.columns)} columns: {', '.join(self.columns)}"
                raise InputError(InputLocation(self._file, line), problem)
            yield Row(self._file, line, dict(zip(self.columns, map(str.strip, cells), strict=True)))
