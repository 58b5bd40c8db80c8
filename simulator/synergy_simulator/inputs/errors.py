"""Input that cannot be used."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class InputLocation:
    """The position of an input: a file, the line in it where that is known, and the field."""

    file: str
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        parts = [self.file, "" if self.line is None else f"line {self.line}", self.field]
        return ", ".join(part for part in parts if part)


class SettingError(ValueError):
    """A setting that does not go with the inputs: one line that names it and says what to change."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
        self.problem = problem

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.setting, self.problem)


class InputError(ValueError):
    """Bad input: one line that names file, line and field, and says what to change."""

    def __init__(self, place: InputLocation, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem

    def __reduce__(self) -> tuple[type[Self], tuple[InputLocation, str]]:
        return type(self), (self.place, self.problem)
