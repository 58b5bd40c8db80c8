"""Finished simulations in a folder: an interrupted command then continues.

What is kept is found again by the values that a simulation is made of, by our own code and by what computes with it.
"""

import hashlib
import io
import json
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError

from synergy_cli.errors import BadInputError
from synergy_cli.simulation.output import write_whole
from synergy_core.model.snapshot import Profile
from synergy_simulator.forecast.calibration import Foretold, Moment, foretell
from synergy_simulator.grid import Case, run_one
from synergy_simulator.report.summary import Summary
from synergy_simulator.runners.code import code
from synergy_simulator.runners.runner import Found, Item, Runner


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is kept of a function."""

    answers: TypeAdapter[Any]
    made_of: Callable[[Any], object]
    """All of an item that its answer depends on: not the label, as figures have simulations in common."""
    labelled: Callable[[Any, Any], Any]
    """The answer, for an item that may have another label."""


def _of_case(case: Case) -> object:
    return case.workload, case.options, case.source


def _of_moment(moment: Moment) -> object:
    """The snapshot follows from these. Its own values have no order that all processes agree on."""
    return moment.snapshot.now, moment.workload, moment.options, moment.draws, moment.seed, moment.source


_KINDS: Final[Mapping[Callable[[Any], Any], _Kind]] = {
    run_one: _Kind(TypeAdapter(Summary), _of_case, lambda found, case: replace(found, label=case.label)),
    foretell: _Kind(TypeAdapter(Foretold), _of_moment, lambda found, _moment: found),
}


@dataclass(slots=True)
class Kept:
    """A place where simulations run (`Runner`), with a folder for what comes of them."""

    folder: Path
    place: Runner
    code: str = field(default_factory=lambda: code().digest)
    """Of this process. The place sees to it that others have the same."""
    cases: int = 0
    taken: int = 0
    """How many of them had been made before."""

    @staticmethod
    def folder_of(name: str) -> Path:
        """The folder, made if it is not there. Raises BadInputError, before the work begins, where nothing could be
        kept."""
        if not name:
            raise BadInputError("--keep: is empty; give the name of a folder")
        try:
            Path(name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=name):
                pass
        except OSError as error:
            raise BadInputError(f"--keep: {name}: {error.strerror}") from None
        return Path(name)

    def run(
        self, function: Callable[[Item], Found], items: Sequence[Item], done: Callable[[int, Found], None]
    ) -> list[Found]:
        """See `Runner`. Each answer is written as soon as it is there, by this process."""
        kind = _KINDS[function]
        files = [self.folder / f"{digest_of(kind.made_of(item), self.code)}.json" for item in items]
        found: dict[int, Found] = {}
        for index, (item, file) in enumerate(zip(items, files, strict=True)):
            there = _read(kind, file)
            if there is not None:
                found[index] = kind.labelled(there, item)
                done(index, found[index])
        self.cases += len(items)
        self.taken += len(found)
        missing = [index for index in range(len(items)) if index not in found]

        def keep(at: int, answer: Found) -> None:
            index = missing[at]
            found[index] = answer
            _write(files[index], answer)
            done(index, answer)

        self.place.run(function, [items[index] for index in missing], keep)
        return [found[index] for index in range(len(items))]

    def told(self, what: str) -> str:
        """For whoever asked for it."""
        if not self.cases:
            return f"--keep: {what} has no simulations that could be kept"
        return f"--keep: {self.taken} of {self.cases} simulations were in {self.folder}"


def _read(kind: _Kind, file: Path) -> Any:
    """None where it has to be simulated."""
    try:
        return kind.answers.validate_python(json.loads(file.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"{file}: {error.strerror}; it is simulated anew")
    except (UnicodeDecodeError, ValidationError, json.JSONDecodeError):
        _warn(f"{file}: is damaged; it is simulated anew")
    return None


def _write(file: Path, answer: Any) -> None:
    try:
        write_whole(str(file), json.dumps(asdict(answer)))
    except OSError as error:
        _warn(f"{file}: {error.strerror}; it is not kept")


def _warn(text: str) -> None:
    click.echo(f"warning: --keep: {text}", err=True)


def digest_of(value: object, code: str) -> str:
    """Of a value, and of the code that computes with it."""
    return _digest(code.encode() + _ByValue.bytes_of(value))


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
