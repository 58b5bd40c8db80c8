"""The commands that the documentation shows."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHERS = ("README.md", "CONTRIBUTING.md", "helm/kube-synergy/README.md")
GENERATED = {"api.md", "troubleshooting.md"}
"""Their words stand in `api/`."""
PROGRAMS = (
    "kube-synergy",
    "make",
    "kubectl",
    "helm",
    "docker",
    "kind",
    "awk",
    "echo",
    "for",
    "printf",
    "export",
    "(cd",
)
"""A block that begins with one of these has commands."""
_FENCE = re.compile(r"^ *```(\w*) *$")
_NEEDS = re.compile(r"<!-- needs: (.+) -->")
_PAGE_NEEDS = re.compile(r"<!-- all commands need: (.+) -->")
_COMMAND = re.compile(r"(?:^|[$({]|&&|[|;]) *(?:[\w./]*/)?kube-synergy +([^|;&><)#]*)")
_PATH = re.compile(r"`(\w[\w.-]*/[\w./-]*)`")
_INLINE = re.compile(r"`kube-synergy ([^`]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """Commands that stand together on a page."""

    page: str
    line: int
    commands: tuple[str, ...]
    """Without prompts and output; a command that goes on in the next line is one."""
    needs: str
    """What a reader must have to run them; empty where nothing is needed."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """The pages that are written by hand. Decisions are records: they stay as they were."""
    docs = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/reproductions").glob("*.md"))]
    return [*(ROOT / name for name in OTHERS), *(page for page in docs if page.name not in GENERATED)]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page that have commands."""
    lines = page.read_text(encoding="utf-8").splitlines()
    of_all = next((found[1] for line in lines if (found := _PAGE_NEEDS.search(line))), "")
    index = 0
    while index < len(lines):
        fence = _FENCE.match(lines[index])
        if not fence:
            index += 1
            continue
        end = next(at for at in range(index + 1, len(lines)) if lines[at].strip() == "```")
        commands = _commands(fence[1], lines[index + 1 : end])
        if commands:
            above = _NEEDS.search(lines[index - 1])
            name = str(page.relative_to(ROOT))
            yield Block(name, index + 1, tuple(commands), above[1] if above else of_all)
        index = end + 1


def _commands(language: str, lines: list[str]) -> list[str]:
    """The commands of a block; nothing where it has none."""
    if language not in {"", "sh", "bash", "console"}:
        return []
    if language == "console":
        return _after_prompts(lines)
    first = next((line.partition(" ")[0] for line in lines if line), "")  # a drawing begins with a space
    return _joined(lines) if first.rpartition("/")[2] in PROGRAMS else []


def _after_prompts(lines: list[str]) -> list[str]:
    found, goes_on = list[str](), False
    for line in lines:
        if line.startswith("$ ") or goes_on:
            found.append(line.removeprefix("$ "))
            goes_on = line.endswith("\\")
    return _joined(found)


def _joined(lines: list[str]) -> list[str]:
    text = re.sub(r"\\\n *", " ", "\n".join(lines))
    return [line for line in text.splitlines() if line.strip()]


def arguments(command: str) -> Iterator[list[str]]:
    """Of each call of kube-synergy in a command."""
    for found in _COMMAND.finditer(command):
        plain = found[1].replace('"$@"', "").replace("[", "").replace("]", "")
        yield shlex.split(plain)


def inline(page: Path) -> Iterator[list[str]]:
    """Arguments of the calls of kube-synergy that a page has within its sentences."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for found in _INLINE.finditer(text):
        yield shlex.split(re.sub(r"\s+", " ", found[1]).replace("[", "").replace("]", ""))


def named_paths(page: Path) -> Iterator[str]:
    """Files and folders of the project that a page names; not those that have a NAME to be filled in."""
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()}
    for found in _PATH.finditer(page.read_text(encoding="utf-8")):
        if found[1].partition("/")[0] in tops and not re.search(r"\b[A-Z]{4,}\b", found[1]):
            yield found[1]
