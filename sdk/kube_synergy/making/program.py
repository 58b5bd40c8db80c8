"""A program as a job gets it: text files, of which one is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_synergy.errors import InvalidJobError


@dataclass(frozen=True, slots=True)
class Program:
    """Files by name, the one that python3 runs, and its arguments. `what` names the program in errors."""

    name: str
    what: str
    files: Mapping[str, str]
    main: str
    words: Sequence[str] = ()


def program_of_script(script: Path, words: Sequence[str] = ()) -> Program:
    """A script with its arguments. Raises InvalidJobError where it cannot be read."""
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidJobError(f"script: cannot read {script}: {error}") from error
    return Program(script.stem, f"the script {script}", {script.name: text}, script.name, tuple(words))
