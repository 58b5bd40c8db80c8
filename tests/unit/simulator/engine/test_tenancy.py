"""Tenants over a simulated trace: guarantees hold, and what tenants had is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from synergy_cli.main import main
from synergy_simulator.inputs.clusters import read_cluster
from synergy_simulator.inputs.errors import InputError

POOL = "pools:\n- {name: v, gpu_type: V100, nodes: 1, gpus_per_node: 4, cpus_per_node: 12, memory_gib_per_node: 240}\n"
OWNER = "tenants:\n- {name: owner, guarantee: {V100: 2}}\n"
HOUR = 3600


def simulated(folder: Path, tenants: str, rows: list[str], policy: str = "fifo", *more: str) -> Any:
    (folder / "trace.csv").write_text("\n".join(["job_id,arrival_s,gpus,model,duration_s,tenant", *rows, ""]))
    (folder / "cluster.yaml").write_text(POOL + tenants)
    files = ["--trace", str(folder / "trace.csv"), "--cluster", str(folder / "cluster.yaml")]
    return CliRunner().invoke(main, ["simulate", *files, "--policy", policy, "--mechanism", "tune", *more])


GUESTS = [f"{n},0,1,m,{10 * HOUR},guest" for n in range(4)]
OWNERS = [f"{n},{HOUR},1,m,{2 * HOUR},owner" for n in range(4, 6)]


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf", "max-min-fairness"])
def test_a_guarantee_is_given_back_at_the_next_round_and_lent_again(tmp_path: Path, policy: str) -> None:
    """The owner's jobs come after an hour, when guests hold all GPUs, and run for two hours."""
    told = tmp_path / "jobs.csv"
    answer = simulated(tmp_path, OWNER, GUESTS + OWNERS, policy, "--json", "--per-job", str(told))
    assert answer.exit_code == 0, answer.output
    waited = {row.split(",")[0]: float(row.split(",")[2]) for row in told.read_text().splitlines()[1:]}
    assert waited["4"] - HOUR <= 300
    assert waited["5"] - HOUR <= 300
    figures = json.loads(answer.stdout)
    assert 0.95 < figures["jain_index"] <= 1.0
    assert 0.0 <= figures["share_error"] < 0.1
    of = {one["name"]: one for one in figures["tenants"]}
    assert of["owner"]["used"] == pytest.approx(4.0, abs=0.1)
    assert of["owner"]["borrowed"] == 0.0
    assert of["owner"]["lent"] > 2.0
    assert of["guest"]["borrowed"] == of["guest"]["used"] == pytest.approx(40.0, abs=0.1)
    lasts = figures["makespan_s"] / HOUR
    assert of["owner"]["guaranteed"] == pytest.approx(2 * lasts, rel=1e-6)


def test_the_table_tells_tenants(tmp_path: Path) -> None:
    answer = simulated(tmp_path, OWNER, GUESTS + OWNERS)
    assert "Jain's index of tenants" in answer.output
    assert "GPU-hours of tenants  guaranteed  used  borrowed  lent" in answer.output


def test_without_guarantees_and_limits_nothing_of_tenants_is_told(tmp_path: Path) -> None:
    answer = simulated(tmp_path, "", GUESTS, "fifo", "--json")
    assert not {"tenants", "share_error", "jain_index"} & json.loads(answer.stdout).keys()


def test_a_job_beyond_every_limit_is_named(tmp_path: Path) -> None:
    limited = "tenants:\n- {name: guest, limit: {V100: 2}}\n"
    answer = simulated(tmp_path, limited, [f"0,0,4,m,{HOUR},guest"])
    assert answer.exit_code == 2
    assert "--cluster: tenant guest may hold 2 GPUs of a type, and job 0 needs 4" in answer.output


@pytest.mark.parametrize(
    ("tenants", "problem"),
    [
        ("tenants:\n- {nam: a}\n", r"tenants\[0\]\.nam"),
        ("tenants:\n- {name: a, guarantee: {V100: -1}}\n", r"tenants\[0\]\.guarantee\.V100: input should be greater"),
        ("tenants:\n- {name: a, parent: b}\n", r"tenants\[0\]\.parent: 'b' is not in tenants"),
        ("tenants: 3\n", r"tenants: input should be a valid tuple"),
    ],
)
def test_a_bad_tree_is_refused_with_its_line(tmp_path: Path, tenants: str, problem: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(POOL + tenants)
    with pytest.raises(InputError, match=problem):
        read_cluster(path)
