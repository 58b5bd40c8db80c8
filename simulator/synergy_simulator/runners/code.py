"""What a process computes with: processes that agree in it find the same, bit for bit."""

import hashlib
import platform
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Generic

import synergy_core
from synergy_simulator.runners.errors import OtherCodeError
from synergy_simulator.runners.runner import Found, Item

LIBRARIES: Final = ("cvxpy", "highspy", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class Code:
    """Names and versions of all that takes part in a simulation."""

    parts: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        """Differs where a part does."""
        return hashlib.sha256(repr(self.parts).encode()).hexdigest()

    def against(self, other: "Code") -> str:
        """How the parts of another process differ from this one's; empty where they do not."""
        mine, theirs = dict(self.parts), dict(other.parts)
        return ", ".join(
            f"{name} {theirs.get(name, 'missing')} instead of {mine.get(name, 'missing')}"
            for name in sorted({*mine, *theirs})
            if mine.get(name) != theirs.get(name)
        )


def fingerprint(packages: Iterable[Path], libraries: Iterable[str]) -> Code:
    """Of Python, the kind of processor, the versions of libraries, and the sources in the packages' folders."""
    digest = hashlib.sha256()
    for folder in packages:
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return Code(
        (
            ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
            ("processor", platform.machine()),
            *((name, _version(name)) for name in libraries),
            ("kube-synergy's sources", digest.hexdigest()[:12]),
        )
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "missing"


@cache
def code() -> Code:
    """Of this process, when it is first asked: the code that it has loaded by then stays."""
    return fingerprint((*map(Path, synergy_core.__path__), Path(__file__).parents[1]), LIBRARIES)


@dataclass(frozen=True, slots=True)
class SameCode(Generic[Item, Found]):
    """A function that other processes call only if they compute with the same code."""

    function: Callable[[Item], Found]
    code: Code

    def __call__(self, item: Item) -> Found:
        """Raises OtherCodeError, which names this machine and what differs here."""
        differences = self.code.against(code())
        if differences:
            raise OtherCodeError(f"a process on {socket.gethostname()} has other code: {differences}; begin again")
        return self.function(item)
