"""`kubectl synergy export` and `rounds` on an API server of our own; `simulate` reads what `export` has written."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.api_server.list_server import ListServer, Object, serving
from support.extender.cluster import GI, job_object, node_object
from synergy_api.timestamps import format_time
from synergy_cli.main import main

NOW = float(int(time.time()))
MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [GI], "stepsPerSecond": [[1.0]]}
Say = Callable[..., Result]


def job(name: str, age: float, *, profiled: bool = True) -> Object:
    status = {"profile": {"state": "Complete", "matrices": [MATRIX]}} if profiled else {}
    return job_object(name, status=status, creationTimestamp=format_time(NOW - age))


@pytest.fixture
def server() -> ListServer:
    jobs = [job("a", 500), job("b", 400), job("unknown", 300, profiled=False), job("old", 9 * 86_400)]
    involved = {"kind": "TrainingJob", "namespace": "team", "name": "a", "uid": "uid-a"}
    told = {"involvedObject": involved, "lastTimestamp": format_time(NOW - 60), "reason": "WorkersStarting"}
    policy = {"metadata": {"name": "default"}, "spec": {"roundSeconds": 60}}
    return ListServer(
        trainingjobs=jobs, nodes=[node_object("n1"), node_object("n2")], schedulingpolicies=[policy],
        events=[{"metadata": {"namespace": "team", "name": "e"}, **told, "message": "run 1 starts"}],
    )  # fmt: skip


@pytest.fixture
def say(server: ListServer, tmp_path: Path) -> Iterator[Say]:
    with serving(server, tmp_path) as kubeconfig:
        yield lambda *words: CliRunner().invoke(main, [*words, "--kubeconfig", str(kubeconfig)])


def test_the_simulator_reads_what_is_exported(say: Say, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = say("export", "--out", str(folder))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 jobs written: ")
    assert "note: team/unknown: is left out" in done.stderr
    files = [f"--{name}={folder / file}" for name, file in
             (("trace", "trace.csv"), ("profiles", "profiles.json"), ("cluster", "cluster.yaml"))]  # fmt: skip
    simulated = CliRunner().invoke(main, ["simulate", *files, "--policy", "fifo", "--json"])
    assert simulated.exit_code == 0, simulated.output
    answer = json.loads(simulated.stdout)
    assert (answer["jobs"], answer["makespan_s"]) == (2, pytest.approx(1100, abs=5))


def test_older_jobs_come_with_a_longer_time(say: Say, tmp_path: Path) -> None:
    assert "3 jobs written" in say("export", "--since", "2w", "--out", str(tmp_path / "out")).stdout
    assert "no job of the last 1m" in say("export", "--since", "1m", "--out", str(tmp_path / "out")).stderr
    assert "'soon' is no time" in say("export", "--since", "soon", "--out", str(tmp_path / "out")).stderr


def test_without_nodes_there_is_no_cluster_file(server: ListServer, say: Say, tmp_path: Path) -> None:
    server.hidden = {"nodes"}
    done = say("export", "--out", str(tmp_path / "out"))
    assert "you may not list nodes" in done.stderr
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["profiles.json", "trace.csv"]


def test_rounds_are_told_from_events(server: ListServer, say: Say) -> None:
    (found,) = json.loads(say("rounds", "-o", "json").stdout)
    assert found["index"] == (NOW - 60) // 60
    assert [(one["job"], one["what"], one["message"]) for one in found["decided"]] == [
        ("team/a", "started", "run 1 starts")
    ]
    assert "WorkersStarting" in say("rounds").stdout
    server.hidden = {"events"}
    done = say("rounds")
    assert done.stdout == "no decision is known any more\n"
    assert "you may not list events" in done.stderr
