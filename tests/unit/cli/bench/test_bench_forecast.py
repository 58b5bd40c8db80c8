"""`kube-synergy bench forecast` on a small cluster."""

import json

from click.testing import CliRunner

from synergy_cli.main import main

SMALL = ["bench", "forecast", "--nodes", "2", "--jobs", "12", "--draws", "2"]


def test_each_policy_has_its_processes_and_its_reference() -> None:
    found = CliRunner().invoke(main, [*SMALL, "--json"], catch_exceptions=False)
    report = json.loads(found.stdout)
    assert [case["policy"] for case in report["cases"]] == ["srtf", "2d-las"]
    for case in report["cases"]:
        assert (case["gpus"], case["jobs"], case["draws"]) == (16, 12, 2)
        assert 0 < case["running"] < 12
        assert 0.1 < case["first_s"] < case["all_s"] + 1.0, "a process begins with its imports"
        assert case["ratio"] > 0
        assert case["within_aims"] == (case["first_s"] <= 2.0 and case["all_s"] <= 30.0)


def test_the_table_names_the_aims() -> None:
    found = CliRunner().invoke(main, SMALL, catch_exceptions=False)
    assert "first answer s" in found.output
    assert "The aims are 2 s and 30 s." in found.output
