"""`kube-synergy bench forecast` on a small cluster."""

import json

from click.testing import CliRunner

from synergy_cli.bench.forecast import Case, _text
from synergy_cli.main import main


def test_each_policy_has_its_processes_and_its_reference() -> None:
    found = CliRunner().invoke(
        main, ["bench", "forecast", "--nodes", "2", "--jobs", "12", "--draws", "2", "--json"], catch_exceptions=False
    )
    report = json.loads(found.stdout)
    assert [case["policy"] for case in report["cases"]] == ["srtf", "2d-las"]
    for case in report["cases"]:
        assert (case["gpus"], case["jobs"], case["draws"]) == (16, 12, 2)
        assert 0 < case["running"] < 12
        assert 0.1 < case["first_s"] < case["all_s"] + 1.0, "a process begins with its imports"
        assert case["ratio"] > 0
        assert case["within_aims"] == (case["first_s"] <= 2.0 and case["all_s"] <= 30.0)


def test_the_table_names_the_aims() -> None:
    case = Case(
        policy="srtf", gpus=16, jobs=12, running=5, draws=2,
        first_s=2.5, all_s=9.0, usual_rounds_s=4.0, ratio=1.23, within_aims=False,
    )  # fmt: skip
    header, _, row, *_, note = _text([case]).splitlines()
    assert header.split("  ")[0] == "policy"
    assert row.split() == ["srtf", "16", "12", "5", "2.50", "2", "9.0", "4.0", "1.2x", "no"]
    assert note == "Processor seconds. The aims are 2 s and 30 s."
