"""The files of examples/simulation are what the guide says they are, and show what the README says."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_cli.main import main
from synergy_simulator.inputs.profiles import read_profiles
from synergy_simulator.workloads.models import MODELS, built_in_profiles

FOLDER = Path(__file__).parents[3] / "examples" / "simulation"


def test_the_trace_is_drawn_by_the_command_of_the_guide(tmp_path: Path) -> None:
    drawn = tmp_path / "trace.csv"
    result = CliRunner().invoke(main, ["trace", str(drawn), "--jobs", "300", "--load", "2.4", "--seed", "7"])
    assert result.exit_code == 0, result.output
    assert drawn.read_text() == (FOLDER / "trace.csv").read_text()


@pytest.mark.parametrize("model", MODELS)
def test_the_profiles_are_the_built_in_models(model: str) -> None:
    ours, own = (
        read_profiles(FOLDER / "profiles.json").find(model, "V100", 1),
        built_in_profiles().find(model, "V100", 1),
    )
    assert ours is not None
    assert own is not None
    assert (ours.cpu_millis, ours.memory_bytes) == (own.cpu_millis, own.memory_bytes)
    for row, own_row in zip(ours.steps_per_s, own.steps_per_s, strict=True):
        assert row == pytest.approx(own_row, abs=1e-4)


def test_tune_is_better_on_it_than_proportional() -> None:
    files = [f"--{name}={FOLDER / file}" for name, file in _FILES.items()]
    hours = {}
    for mechanism in ("proportional", "tune"):
        result = CliRunner().invoke(main, ["simulate", *files, "--policy=fifo", f"--mechanism={mechanism}", "--json"])
        assert result.exit_code == 0, result.output
        hours[mechanism] = json.loads(result.stdout)["avg_jct_s"]
    assert hours["tune"] < 0.8 * hours["proportional"]


_FILES = {"trace": "trace.csv", "profiles": "profiles.json", "cluster": "cluster.yaml"}
