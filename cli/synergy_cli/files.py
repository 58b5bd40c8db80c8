"""Input files of commands."""

import sys
from pathlib import Path

from synergy_cli.errors import BadInputError


def read_input(source: str, name: str) -> bytes:
    """The bytes of a file, of standard input for `-`; `name` is the argument that an error names."""
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise BadInputError(f"{name}: cannot read {source}: {error.strerror}; give the path of a file") from error


def in_file(source: str, problem: object) -> str:
    """What is wrong in a file, with its name in front; of standard input without one."""
    return str(problem) if source == "-" else f"{source}: {problem}"
