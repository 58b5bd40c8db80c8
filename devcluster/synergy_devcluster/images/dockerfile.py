"""What a Dockerfile reads: its base images and the files of its context. If they are unchanged, a build can be
skipped."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

IGNORED = frozenset({".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"})
"""Folders whose content is never an input."""


@dataclass(frozen=True)
class Dockerfile:
    """The inputs of a build: base images by name, and the sources that COPY and ADD take from the context."""

    bases: tuple[str, ...]
    sources: tuple[str, ...]


def parse(text: str, build_args: Mapping[str, str]) -> Dockerfile:
    """Read a Dockerfile; ARGs before the first FROM are resolved in base names, ``build_args`` over their defaults."""
    values: dict[str, str] = {}
    bases: list[str] = []
    stages: set[str] = set()
    sources: list[str] = []
    for keyword, rest in _instructions(text):
        if keyword == "ARG" and not bases:
            name, _, default = rest.partition("=")
            values[name.strip()] = build_args.get(name.strip(), default.strip().strip("\"'"))
        elif keyword == "FROM":
            words = [word for word in rest.split() if not word.startswith("--")]
            base = _expand(words[0], values)
            if base not in stages and base != "scratch":
                bases.append(base)
            if len(words) == 3 and words[1].upper() == "AS":
                stages.add(words[2])
        elif keyword in {"COPY", "ADD"}:
            sources += _copied(rest)
        elif keyword == "RUN" and "--mount=type=bind" in rest:
            sources.append(".")
    return Dockerfile(tuple(bases), tuple(sources))


def input_files(context: Path, sources: tuple[str, ...]) -> list[Path]:
    """Return every file of the context that the sources name, sorted; folders count with all they hold."""
    found: set[Path] = set()
    for source in sources:
        pattern = source.lstrip("/").removeprefix("./").rstrip("/")
        for path in [context] if pattern in {"", "."} else context.glob(pattern):
            found.update(_files(path))
    return sorted(found)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            if entry.name not in IGNORED:
                yield from _files(entry)
    else:
        yield path


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\s*\n", " ", "\n".join(lines)).splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword:
            yield keyword.upper(), rest.strip()


def _copied(rest: str) -> list[str]:
    words = shlex.split(rest.strip("[]").replace(",", " ") if rest.startswith("[") else rest)
    if any(word.startswith("--from=") for word in words):
        return []
    plain = [word for word in words if not word.startswith("--")]
    return [word for word in plain[:-1] if not word.startswith("<<")]


def _expand(word: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?(\w+)\}?", lambda match: values.get(match[1], ""), word)
