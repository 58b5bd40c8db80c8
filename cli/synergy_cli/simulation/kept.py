"""Finished simulations in a folder: an interrupted reproduction then continues.

What is kept is found again by the values that a simulation is made of, by our own code and by what computes with it.
"""

import hashlib
import io
import json
import pickle
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Final, Self

import click
from pydantic import TypeAdapter, ValidationError

import synergy_core
import synergy_simulator
from synergy_cli.errors import BadInputError
from synergy_cli.simulation.output import write_whole
from synergy_core.model.snapshot import Profile
from synergy_simulator.grid import Case, run_one
from synergy_simulator.report.summary import Summary

LIBRARIES: Final = ("cvxpy", "highspy", "numpy", "scipy")
_SUMMARIES: Final = TypeAdapter(Summary)


def fingerprint(packages: Iterable[ModuleType], libraries: Iterable[str]) -> str:
    """Of all that computes: Python, the versions of libraries, and the sources of packages."""
    digest = hashlib.sha256(" ".join([sys.version, *(f"{name} {version(name)}" for name in libraries)]).encode())
    for package in packages:
        for folder in package.__path__:
            for file in sorted(Path(folder).rglob("*.py")):
                digest.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


CODE: Final = fingerprint((synergy_core, synergy_simulator), LIBRARIES)
"""Of this process, taken as it begins: what runs later is what was there now."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Simulations that are kept in a folder."""

    folder: Path
    code: str
    """Of the process that began."""

    @classmethod
    def of(cls, folder: str) -> Self:
        """Raises BadInputError, before the work begins, where nothing could be kept."""
        if not folder:
            raise BadInputError("--keep: is empty; give the name of a folder")
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise BadInputError(f"--keep: {folder}: {error.strerror}") from None
        return cls(Path(folder), CODE)

    def found(self, cases: Sequence[Case]) -> list[Summary | None]:
        """Of each case what is kept; None where it has to be simulated."""
        return [self._read(case) for case in cases]

    def run_one(self, case: Case) -> Summary:
        """Simulate a case, in whichever process, and keep what is found.

        Raises:
            BadInputError: this process has begun with other code than the first.
        """
        if self.code != CODE:
            raise BadInputError("--keep: the code was changed after this run began; begin again")
        found = run_one(case)
        file = self._file(case)
        try:
            write_whole(str(file), json.dumps(asdict(found)))
        except OSError as error:
            _warn(f"{file}: {error.strerror}; it is not kept")
        return found

    def _read(self, case: Case) -> Summary | None:
        file = self._file(case)
        try:
            return replace(_SUMMARIES.validate_python(json.loads(file.read_bytes())), label=case.label)
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"{file}: {error.strerror}; it is simulated anew")
        except (UnicodeDecodeError, ValidationError, json.JSONDecodeError):
            _warn(f"{file}: is damaged; it is simulated anew")
        return None

    def _file(self, case: Case) -> Path:
        return self.folder / f"{digest_of(case, self.code)}.json"


def _warn(text: str) -> None:
    click.echo(f"warning: --keep: {text}", err=True)


def digest_of(case: Case, code: str) -> str:
    """Not of the label: figures that have a simulation in common make it once."""
    return _digest(code.encode() + _ByValue.bytes_of((case.workload, case.options)))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]


class _ByValue(pickle.Pickler):
    """The same bytes for equal values, whichever of their parts are one object, as that differs between processes.

    Hence without the memory of objects that pickling has else (`fast`). A profile, which thousands of tasks share, is
    written once by what is in it.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.fast = True
        self._profiles: dict[int, str] = {}

    @classmethod
    def bytes_of(cls, value: object) -> bytes:
        """Of a value whose parts are kept meanwhile: each keeps its id."""
        text = io.BytesIO()
        cls(text).dump(value)
        return text.getvalue()

    def persistent_id(self, value: object) -> str | None:
        """Of a profile; of all else None: it is written whole."""
        if not isinstance(value, Profile):
            return None
        if id(value) not in self._profiles:
            self._profiles[id(value)] = _digest(_ByValue.bytes_of([getattr(value, one.name) for one in fields(value)]))
        return self._profiles[id(value)]
