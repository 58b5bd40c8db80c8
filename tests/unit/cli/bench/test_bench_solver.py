"""`kube-synergy bench solver`: every policy, each figure beside the authors' and the aim, repeatable by its seed."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from support.papers import found
from synergy_cli.bench.allocations import drawn_table, problem, read_table
from synergy_cli.bench.solver import POLICIES
from synergy_cli.main import main
from synergy_core.policies.allocation.programme.activities import helpful


def test_json_has_a_case_for_each_policy_with_and_without_pairs() -> None:
    result = CliRunner().invoke(main, ["bench", "solver", "--json", "--repeats", "1", "--jobs", "32", "--seed", "3"])
    report = json.loads(result.stdout)
    assert (report["seed"], report["repeats"], report["table"], report["solver"]) == (3, 1, "drawn", "HIGHS")
    assert [(case["policy"], case["pairs"], case["different"]) for case in report["cases"]] == [
        (policy, pairs, different) for pairs in (False, True) for different in (False, True) for policy in POLICIES
    ]
    assert {case["status"] for case in report["cases"]} == {"optimal"}
    first = report["cases"][0]
    assert (first["authors_s"], first["aim_cpu_s"], first["within_aim"]) == (0.06, None, None)
    assert all(case["wall_s"] > 0 and case["cpu_s"] > 0 for case in report["cases"])
    assert all(case["authors_s"] is None for case in report["cases"] if case["different"])


def test_no_two_of_the_different_jobs_are_alike() -> None:
    made = problem(drawn_table(0), 400, pairs=True, different=True)
    assert len(np.unique(made.throughputs, axis=0)) == 400
    assert len(np.unique(problem(drawn_table(0), 400).throughputs, axis=0)) == 26
    kept = made.pair_throughputs / made.throughputs[made.pairs].swapaxes(1, 2)
    assert kept.max() <= 1.0


def test_the_table_has_a_row_per_case() -> None:
    arguments = ["bench", "solver", "--jobs", "16", "--policy", "makespan", "--no-pairs", "--kinds", "--repeats", "2"]
    lines = CliRunner().invoke(main, arguments).stdout.splitlines()
    assert len(lines) == 3
    assert lines[2].split()[:4] == ["makespan", "no", "16", "26"]


def test_tenants_that_serve_in_order_are_measured_on_request() -> None:
    arguments = ["bench", "solver", "--jobs", "8", "--no-pairs", "--different", "--repeats", "1", "--json"]
    fair, in_order = (
        json.loads(CliRunner().invoke(main, [*arguments, "--policy", policy]).stdout)["cases"][0]["objective"]
        for policy in ("hierarchical", "hierarchical-fifo")
    )
    assert fair != in_order


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "x"], "error: --policy: 'x' is not measured; choose of max-min-fairness, "),
        (["--table", "nowhere.json"], "error: --table: cannot use nowhere.json: "),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["bench", "solver", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith(words)


def test_the_drawn_table_is_like_the_authors() -> None:
    """Fastest on the fastest type, pairs that help and pairs that do not; the same for the same seed."""
    table = drawn_table(1)
    assert np.array_equal(table.shared, drawn_table(1).shared)
    assert not np.array_equal(table.alone, drawn_table(2).alone)
    assert (np.diff(table.alone, axis=1) < 0).all()
    useful = helpful(problem(table, 40, pairs=True)).mean()
    assert 0.3 < useful < 0.95


@pytest.mark.papers
def test_the_authors_table_is_read() -> None:
    data = found("gavel")
    if data is None:
        pytest.skip("the papers' data tables are not beside the project (PAPERS_DATA names their folder)")
    table = read_table(data / "simulation_throughputs.json")
    assert table.alone.shape == (26, 3)
    assert table.shared.swapaxes(0, 1)[..., ::-1] == pytest.approx(table.shared, rel=0.2)
