"""`bench modelling`: every way finds the same optimum of the same programme."""

import json

import pytest
from click.testing import CliRunner

from synergy_cli.main import main


@pytest.mark.parametrize("pairs", [(), ("--pairs",)])
def test_all_ways_find_the_same_optimum(pairs: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["bench", "modelling", "--jobs", "24", "--repeats", "1", "--json", *pairs])
    ways = json.loads(result.output)["ways"]
    assert [way["way"] for way in ways] == ["cvxpy with HiGHS", "HiGHS directly", "kube-synergy solve"]
    assert all(way["objective"] == pytest.approx(ways[0]["objective"], rel=1e-6) for way in ways)
    assert 0 < ways[0]["modelling_s"] < ways[0]["seconds"]


def test_the_table_has_both_sizes_and_a_dash_where_nothing_is_measured() -> None:
    result = CliRunner().invoke(main, ["bench", "modelling", "--jobs", "4", "--jobs", "8", "--repeats", "1"])
    assert [line.split()[0] for line in result.output.splitlines()[2:]] == ["4"] * 3 + ["8"] * 3
    assert " - " in result.output


def test_one_job_is_refused_with_the_option() -> None:
    result = CliRunner().invoke(main, ["bench", "modelling", "--jobs", "1"])
    assert result.exit_code == 2
    assert "--jobs" in result.output
