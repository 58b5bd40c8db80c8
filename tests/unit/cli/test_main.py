"""The command line as a whole."""

from click.testing import CliRunner

from synergy_cli.lazy import LazyCommand, LazyGroup
from synergy_cli.main import main
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
