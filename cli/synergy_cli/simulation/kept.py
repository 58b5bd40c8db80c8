"""Finished simulations in a folder, so that a long reproduction that was interrupted goes on where it was."""

import hashlib
import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

import synergy_core
import synergy_simulator
from synergy_cli.errors import BadInputError
from synergy_cli.simulation.output import write_whole
from synergy_core.model import Profile
from synergy_simulator.grid import Case, run_one
from synergy_simulator.report.summary import Summary

_SUMMARIES = TypeAdapter(Summary)


@dataclass(frozen=True, slots=True)
class Kept:
    """Simulates what is not in the folder; a case is found again by all that it is made of, and by the code."""

    folder: Path

    def check(self) -> None:
        """Raise BadInputError, before the work begins, where nothing could be kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".writable").touch()
            (self.folder / ".writable").unlink()
        except OSError as error:
            raise BadInputError(f"--keep: {self.folder}: {error.strerror}") from None

    def run_one(self, case: Case) -> Summary:
        """The simulation that is kept, else a new one, which is kept from now on.

        Raises:
            BadInputError: what is kept is damaged.
        """
        file = self.folder / f"{_digest(case)}.json"
        if file.exists():
            try:
                return replace(_SUMMARIES.validate_json(file.read_bytes()), label=case.label)
            except ValidationError:
                raise BadInputError(f"--keep: {file} is damaged; remove it") from None
        found = run_one(case)
        write_whole(str(file), _SUMMARIES.dump_json(found).decode())
        return found


def _digest(case: Case) -> str:
    """Not of the label: figures that have a simulation in common make it once."""
    text = io.BytesIO()
    _ByValue(text).dump((case.workload, case.options))
    return hashlib.sha256(_code() + text.getvalue()).hexdigest()[:24]


class _ByValue(pickle.Pickler):
    """The same bytes for equal values, whichever of their parts are one object: that differs between processes."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.fast = True
        self._profiles: dict[int, str] = {}

    def persistent_id(self, value: object) -> str | None:
        """A profile, which thousands of tasks share, once; the case holds on to it, so that the id stays its own."""
        if not isinstance(value, Profile):
            return None
        if id(value) not in self._profiles:
            text = io.BytesIO()
            plain = pickle.Pickler(text)
            plain.fast = True
            plain.dump(value)
            self._profiles[id(value)] = hashlib.sha256(text.getvalue()).hexdigest()
        return self._profiles[id(value)]


@cache
def _code() -> bytes:
    """Of what decides how a simulation ends: our own code and the solver."""
    digest = hashlib.sha256(version("highspy").encode())
    for file in _sources():
        digest.update(file.read_bytes())
    return digest.digest()


def _sources() -> Iterator[Path]:
    for package in (synergy_core, synergy_simulator):
        for folder in package.__path__:
            yield from sorted(Path(folder).rglob("*.py"))
