"""Commands in the documentation run here, or say what they need; all of them parse.

A block that needs something has `<!-- needs: ... -->` in the line above it. A page whose commands all need something
has `<!-- all commands need: ... -->` once.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from support.documentation import Block, arguments, blocks, inline, named_paths, pages
from synergy_cli.main import main
from synergy_simulator.reproductions.registry import REPRODUCTIONS

ROOT = Path(__file__).parents[3]
PAGES = pages()
BLOCKS = [block for page in PAGES for block in blocks(page)]
RUN = {block.page: [one for one in BLOCKS if one.page == block.page and not one.needs] for block in BLOCKS}
"""Blocks that need nothing, by page: they run in their order in one folder."""
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))


def _check(given: list[str], *, whole: bool) -> None:
    """Parse a call as the command line does. Of one that is not whole, options may be missing."""
    command: click.Command = main
    context = click.Context(main, info_name="kube-synergy")
    rest = list(given)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name!r} in {' '.join(given)!r}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    if isinstance(command, click.Group):
        return
    try:
        made = command.make_context(command.name, rest, parent=context.parent)
    except click.MissingParameter:
        assert not whole, f"{' '.join(given)!r} lacks something"
    except click.exceptions.Exit:
        pass  # --help
    else:
        name = made.params.get("name")
        if command.name == "reproduce" and name != "NAME":
            assert name in REPRODUCTIONS, f"there is no reproduction {name}"


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_commands_of_a_block_parse(block: Block) -> None:
    for command in block.commands:
        for given in arguments(command):
            _check(given, whole='"$@"' not in command)
        if command.startswith("make "):
            words = [word for word in command.partition("#")[0].split()[1:] if "=" not in word]
            assert set(words) <= TARGETS, f"{command}: {set(words) - TARGETS} is no target"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_parse(page: Path) -> None:
    for given in inline(page):
        _check(given, whole=False)


@pytest.mark.parametrize("page", [page for page, found in RUN.items() if found])
def test_commands_that_need_nothing_run(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name, source in (("snapshot", "snapshots/two-servers"), ("problem", "problems/section-4-1")):
        shutil.copy(ROOT / f"examples/{source}.json", tmp_path / f"{name}.json")
    programs = Path(sys.executable).parent
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(programs)
    script = [command for block in RUN[page] for command in block.commands if not command.startswith("make ")]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(script)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page}: {done.stderr}"


def test_the_example_of_sharing_prints_what_the_page_shows() -> None:
    text = (ROOT / "docs/colocation.md").read_text("utf-8")
    shown = text.partition("```console\n$ kube-synergy ")[2].partition("\n```")[0]
    command, _, output = shown.partition("\n")
    arguments = [str(ROOT / word) if word.startswith("examples/") else word for word in command.split()]
    printed = CliRunner().invoke(main, arguments).stdout
    assert _without_time(printed) == _without_time(output)


def _without_time(text: str) -> str:
    return re.sub(r"planned in [\d.]+ ms", "", text).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    written = {"docs/measurements/"}  # by a command
    missing = [path for path in named_paths(page) if path not in written and not (ROOT / path).exists()]
    assert not missing, f"{', '.join(missing)}: not in the project"


def test_blocks_are_found() -> None:
    assert len(BLOCKS) > 40
    assert any(block.needs for block in BLOCKS)
