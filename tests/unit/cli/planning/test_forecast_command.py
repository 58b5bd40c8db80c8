"""`kube-synergy forecast`, `what-if`, `calibrate` and `simulate --snapshots`: the fixed formats, and bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synergy_cli.main import main

TRACE = """job_id,arrival_s,gpus,model,steps
a,0,2,flat,600
b,10,1,flat,900
c,20,1,flat,300
d,700,2,flat,100
e,800,1,flat,400
f,900,1,flat,50
"""
PROFILES = {"models": {"flat": {"V100": {n: {"cpus": [1], "memory_gib": [1], "steps_per_s": [[1.0]]} for n in "12"}}}}
CLUSTER = """pools:
  - {name: v, gpu_type: V100, nodes: 1, gpus_per_node: 2, cpus_per_node: 6, memory_gib_per_node: 125}
"""


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    files = {"trace": TRACE, "profiles": json.dumps(PROFILES), "cluster": CLUSTER}
    found = []
    for name, text in files.items():
        path = tmp_path / {"trace": "t.csv", "profiles": "p.json", "cluster": "c.yaml"}[name]
        path.write_text(text)
        found += [f"--{name}", str(path)]
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def snapshot_at(moment: str, inputs: list[str], tmp_path: Path, policy: str = "fifo") -> Path:
    made = run("simulate", *inputs, "--policy", policy, "--round", "100", "--snapshots", str(tmp_path / "s"),
               "--snapshot-at", moment, "--json")  # fmt: skip
    assert made.exit_code == 0, made.output
    return tmp_path / "s" / f"{moment}.json"


def answer(*arguments: str) -> dict[str, Any]:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_snapshot_of_a_simulation_has_the_fixed_format(inputs: list[str], tmp_path: Path) -> None:
    document = json.loads(snapshot_at("650", inputs, tmp_path).read_text())
    assert (document["now"], document["round_s"]) == (650.0, 100.0)
    assert {job["name"]: job["running"] is not None for job in document["jobs"]} == {"b": True, "c": True}
    assert document["history"] == [
        {"arrival_s": 0.0, "gpus": 2, "model": "flat", "steps": 600.0, "finish_s": 600.0},
        {"arrival_s": 10.0, "gpus": 1, "model": "flat", "steps": 900.0, "finish_s": None},
        {"arrival_s": 20.0, "gpus": 1, "model": "flat", "steps": 300.0, "finish_s": None},
    ]
    assert document["config"] == {"policy": "fifo", "mechanism": "tune"}


def test_a_forecast_has_the_fixed_format_and_the_right_times(inputs: list[str], tmp_path: Path) -> None:
    found = answer("forecast", str(snapshot_at("650", inputs, tmp_path)), "--draws", "5", "--json")
    assert found.keys() == {"now", "draws", "arrivals", "jobs", "seconds"}
    assert (found["now"], found["draws"], found["arrivals"]) == (650.0, 5, "history")
    point = {"p10": 900.0, "p50": 900.0, "p90": 900.0}
    assert found["jobs"][1] == {
        "job": "c",
        "state": "running",
        "start_s": {"p10": 650.0, "p50": 650.0, "p90": 650.0},
        "finish_s": point,
        "start_without_arrivals_s": 650.0,
        "finish_without_arrivals_s": 900.0,
        "unknown": None,
    }


def test_a_trace_takes_the_place_of_the_history(inputs: list[str], tmp_path: Path) -> None:
    state = str(snapshot_at("650", inputs, tmp_path, "las"))
    found = answer("forecast", state, "--history", inputs[1], "--draws", "3", "--horizon", "5000", "--json")
    assert (found["draws"], found["arrivals"]) == (3, "history")
    assert answer("forecast", state, "--seed", "7", "--json")["jobs"][0]["job"] == "a"


def test_what_if_has_the_fixed_format(inputs: list[str], tmp_path: Path) -> None:
    state = str(snapshot_at("50", inputs, tmp_path))
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"name": "new", "gpus": 1, "arrival_s": 50.0, "steps_total": 10,
                               "profiles": {"V100": {"cpu_millis": [1000], "memory_bytes": [1 << 30],
                                                     "steps_per_s": [[1.0]]}}}))  # fmt: skip
    found = answer("what-if", state, "--add-nodes", "v=1", "--add-job", str(job), "--policy", "srtf", "--set",
                   "round_s=50", "--json")  # fmt: skip
    assert found.keys() == {"as_is", "what_if", "jobs", "seconds"}
    assert found["as_is"].keys() == found["what_if"].keys() == {"avg_jct_s", "makespan_s", "gpu_utilization"}
    by_name = {one["job"]: one for one in found["jobs"]}
    assert by_name["new"]["start_s"] == [None, 50.0]
    assert by_name["b"]["start_s"] == [600.0, 60.0], "c and new are shorter"
    text = run("what-if", state, "--add-nodes", "v=1").output
    assert "AS IS" in text
    assert "average JCT" in text


def test_plan_follows_the_config_of_the_snapshot_unless_told_otherwise(inputs: list[str], tmp_path: Path) -> None:
    state = str(snapshot_at("50", inputs, tmp_path, "srtf"))
    assert answer("plan", state, "--json")["policy"] == "srtf"
    assert answer("plan", state, "--policy", "las", "--json")["policy"] == "las"


def test_calibrate_prints_both_tables(inputs: list[str]) -> None:
    found = answer(
        "calibrate", *inputs, "--policy", "las", "--moments", "3", "--draws", "3", "--round", "100", "--json"
    )
    assert found["moments"] == 3
    assert found["finish"]["intervals"] + found["finish"]["points"] > 0
    assert [one["horizon_s"] for one in found["by_horizon"]] == [3600.0, 14400.0, 86400.0, None]
    text = run("calibrate", *inputs, "--moments", "2", "--draws", "2").output
    assert "HOLD THE TRUTH" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--snapshots", "x"], "--snapshots: goes with --snapshot-at"),
        (["--snapshot-at", "5"], "--snapshots: goes with --snapshot-at"),
        (["--snapshots", "x", "--snapshot-at", "5,later"], "must be seconds"),
        (["--snapshots", "x", "--snapshot-at", "5,5.0"], "names a moment twice"),
        (["--snapshots", "/dev/null/x", "--snapshot-at", "5"], "--snapshots: cannot make"),
    ],
)
def test_bad_options_of_snapshots_are_one_line(inputs: list[str], arguments: list[str], words: str) -> None:
    result = run("simulate", *inputs, "--policy", "fifo", *arguments)
    assert (result.exit_code, words in result.output, result.output.count("\n")) == (2, True, 1), result.output


def test_a_moment_after_the_end_is_told(inputs: list[str], tmp_path: Path) -> None:
    result = run("simulate", *inputs, "--snapshots", str(tmp_path / "s"), "--snapshot-at", "1e9", "--json")
    assert "the simulation ended before 1e9 s" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["forecast", "no-such.json"], "cannot read no-such.json"),
        (["forecast", "SNAPSHOT", "--history", "no-such.csv"], "no-such.csv"),
        (["what-if", "SNAPSHOT", "--add-nodes", "v"], "has no ="),
        (["what-if", "SNAPSHOT", "--add-nodes", "v=0"], "needs a count"),
        (["what-if", "SNAPSHOT", "--add-nodes", "x=1"], "no node is like 'x'"),
        (["what-if", "SNAPSHOT", "--remove-node", "x"], "there is no node 'x'"),
        (["what-if", "SNAPSHOT", "--set", "speed=1"], "config.speed: 'speed' is not there; choose one of aware"),
        (["what-if", "SNAPSHOT", "--add-job", "SNAPSHOT"], "--add-job: "),
    ],
)
def test_bad_input_is_one_line(inputs: list[str], tmp_path: Path, arguments: list[str], words: str) -> None:
    state = str(snapshot_at("50", inputs, tmp_path))
    result = run(*(state if one == "SNAPSHOT" else one for one in arguments))
    assert (result.exit_code, words in result.output, result.output.count("\n")) == (2, True, 1), result.output
