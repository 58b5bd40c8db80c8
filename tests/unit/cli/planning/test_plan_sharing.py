"""`kube-synergy plan --colocation`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from synergy_cli.main import main
from synergy_core.colocation.predictors.generic import EFFECTS, SUMS
from synergy_core.colocation.predictors.model_format import SharingModel, model_text

GIB = 2**30


def _snapshot(**node: Any) -> dict[str, Any]:
    job = {
        "gpus": 1,
        "sharing": True,
        "usage": {"V100": {"compute": 0.3, "bandwidth": 0.2, "memory_bytes": 4 * GIB}},
        "profiles": {"V100": {"cpu_millis": [1000], "memory_bytes": [GIB], "steps_per_s": [[2.0]]}},
    }
    one = {"name": "n1", "gpu_type": "V100", "gpus": 1, "cpu_millis": 8000, "memory_bytes": 64 * GIB,
           "replicas": 2, "gpu_memory_bytes": 16 * GIB, **node}  # fmt: skip
    return {"nodes": [one], "jobs": [{"name": name, **job} for name in "ab"]}


def _plan(snapshot: dict[str, Any], *arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", "-", "--policy", "fifo", *arguments], input=json.dumps(snapshot))


def _model(folder: Path, gpu_type: str) -> str:
    path = folder / f"{gpu_type}.json"
    path.write_text(model_text(SharingModel(gpu_type=gpu_type, mps=True, measurements=3, sums=SUMS, effects=EFFECTS)))
    return str(path)


@pytest.mark.parametrize("mode", ["thesis", "thesis-fractions", "auto", "gavel"])
def test_the_plan_names_partners(mode: str, tmp_path: Path) -> None:
    done = _plan(_snapshot(), "--colocation", mode, "--colocation-model", _model(tmp_path, "V100"), "--json")
    answer = json.loads(done.stdout)
    assert [one["shares_gpu_with"] for one in answer["allocations"]] == ["b", "a"]
    assert "b" in _plan(_snapshot(), "--colocation", mode).stdout


def test_nobody_shares_where_it_is_not_asked_for() -> None:
    answer = json.loads(_plan(_snapshot(), "--json").stdout)
    assert [one["shares_gpu_with"] for one in answer["allocations"]] == [None]


def test_bad_options_are_refused_in_one_line(tmp_path: Path) -> None:
    done = _plan(_snapshot(), "--colocation", "spam")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: --colocation: 'spam' is not there; choose one of none, thesis, thesis-fractions, auto, gavel\n",
    )
    done = _plan(_snapshot(), "--colocation", "gavel", "--policy", "las")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: --colocation: gavel shares by an allocation matrix, and las has none")
    for name, message in (("", "gpu_type: is empty; fit it with --gpu-type"), ("V100", "V100 has a model already")):
        files = ["--colocation-model", _model(tmp_path, name)] * 2
        done = _plan(_snapshot(), "--colocation", "auto", *files)
        assert (done.exit_code, message in done.stderr) == (2, True)
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    done = _plan(_snapshot(), "--colocation-model", str(bad))
    assert (done.exit_code, "missing; add it" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("usage", {"V100": {"compute": 1.4, "bandwidth": 0.1}}, "jobs[0].usage.V100.compute"),
        ("usage", {"V100": {"compute": 0.4}}, "jobs[0].usage.V100.bandwidth"),
        ("min_throughput_fraction", 2, "jobs[0].min_throughput_fraction"),
        ("shared", [{"gpu_type": "V100", "partners": [], "fraction": 0.5, "at_s": 0}], "jobs[0].shared[0].partners"),
        ("shared", [{"gpu_type": "V100", "partners": ["b"], "fraction": 0, "at_s": 0}], "jobs[0].shared[0].fraction"),
    ],
)
def test_bad_fields_are_named(field: str, value: Any, path: str) -> None:
    snapshot = _snapshot()
    snapshot["jobs"][0][field] = value
    done = _plan(snapshot, "--colocation", "auto")
    assert (done.exit_code, f"error: {path}" in done.stderr) == (2, True)
