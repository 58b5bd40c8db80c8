"""The command line as a whole."""

import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from synergy_cli.errors import BadInputError, OneLineGroup
from synergy_cli.lazy import LazyCommand, LazyGroup
from synergy_cli.live.cluster.policy import check_spelling
from synergy_cli.main import main
from synergy_cli.simulation.output import write_whole
from synergy_cli.text_table import text_table


def test_all_commands_are_listed_with_what_they_do() -> None:
    text = CliRunner().invoke(main, ["--help"]).stdout
    for command in ("bench", "demo", "devcluster", "plan"):
        assert f"\n  {command} " in text


def test_without_a_command_the_help_is_shown() -> None:
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_an_unknown_command_is_one_line() -> None:
    result = CliRunner().invoke(main, ["plant"])
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "No such command 'plant'" in result.stderr


def test_a_command_of_a_room_is_found_by_name() -> None:
    result = CliRunner().invoke(main, ["devcluster", "--help"])
    assert result.exit_code == 0
    assert "  up " in result.stdout


class _Group(LazyGroup):
    lazy = {
        "absent": LazyCommand("no_such_package.cli", "main", "x"),
        "bare": LazyCommand("synergy_cli.no_such_module", "main", "devcluster"),
    }


def test_a_command_whose_library_is_missing_says_what_to_install() -> None:
    result = CliRunner().invoke(_Group("g"), ["bare", "up", "--gpus", "2"])
    assert result.exit_code == 1
    assert result.stderr == "Error: bare needs synergy_cli.no_such_module: install kube-synergy[devcluster]\n"
    assert "(not installed: kube-synergy[devcluster])" in CliRunner().invoke(_Group("g"), ["--help"]).stdout


def test_a_command_whose_room_is_not_there_is_not_offered() -> None:
    result = CliRunner().invoke(_Group("g"), ["absent"])
    assert (result.exit_code, result.stderr) == (2, "error: No such command 'absent'.\n")


def test_a_table_puts_words_to_the_left_and_numbers_to_the_right() -> None:
    table = text_table(("name", "x"), [("a", "1.5"), ("bbbbb", "10")])
    assert table.splitlines() == ["name     x", "-----  ---", "a      1.5", "bbbbb   10"]


def test_a_cell_with_a_line_break_is_one_line_and_its_column_wide_enough() -> None:
    table = text_table(("name", "x"), [("a\n\x1b", "1.5")])
    assert table.splitlines() == ["name       x", "-------  ---", r"a\n\x1b  1.5"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulat"], "No such command 'simulat'. Did you mean 'simulate'?"),
        (["bench", "planer"], "No such command 'planer'. Did you mean 'planner'?"),
        (["qqqqq"], "No such command 'qqqqq'."),
        (["reproduce", "synergy-fig99"], "NAME: 'synergy-fig99' is not there; did you mean 'synergy-fig9'? choose one"),
        (
            ["queue", "-o", "jsn"],
            "Invalid value for '-o' / '--output': 'jsn' is not there; did you mean 'json'? choose",
        ),
        (["trace", "x", "--gpus", "phily"], "Invalid value for '--gpus': 'phily' is not there; did you mean 'philly'?"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(arguments: list[str], line: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {line}")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("polcy", "las", "polcy: 'polcy' is not there; did you mean 'policy'? choose one of agnostic, autoscaling, "),
        ("policy", "srft", "policy: 'srft' is not there; did you mean 'srtf'? choose one of "),
        ("queues.promoteKnop", "3", "queues.promoteKnop: 'promoteKnop' is not there; did you mean 'promoteKnob'?"),
    ],
)
def test_a_misspelt_field_of_the_policy_gets_a_suggestion(path: str, value: str, problem: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(problem)):
        check_spelling(path.split("."), value)


@pytest.mark.parametrize(
    ("path", "value"),
    [("policy", "srtf"), ("queues.promoteKnob", "3"), ("new", "1"), ("policy", "qqqq"), ("tenants", "[]")],
)
def test_what_is_like_nothing_known_is_left_to_the_api_server(path: str, value: str) -> None:
    check_spelling(path.split("."), value)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    @click.group(cls=OneLineGroup)
    def group() -> None: ...

    @group.command()
    def write() -> None:
        write_whole(str(tmp_path / "no" / "file"), "text")

    result = CliRunner().invoke(group, ["write"])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert str(tmp_path / "no") in result.stderr
