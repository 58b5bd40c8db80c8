"""`kubectl synergy when`, `what-if` and `policy set` on an API server of our own, as users with different rights."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from support.api_server.list_server import ListServer, Object, serving
from support.extender.cluster import GI, allocation, job_object, node_object, pod_object, share, worker_labels
from synergy_api.timestamps import format_time
from synergy_cli.live.cluster import policy
from synergy_cli.main import main

START = time.time()
MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [GI], "stepsPerSecond": [[1.0]]}
PROFILED = {"profile": {"state": "Complete", "matrices": [MATRIX]}}
Say = Callable[..., Result]


def job(name: str, *, gpus: int = 8, steps: int = 1000, **status: Any) -> Object:
    made = job_object(name, gpus=gpus, spec={"steps": steps}, status={**PROFILED, **status})
    made["metadata"]["creationTimestamp"] = format_time(float(int(START)) - 100)
    return made


def runs(steps: int = 1000) -> Object:
    place = allocation(share("n1", gpus=8), until=START + 600, stepsPerSecond=1.0)
    since = {"runningSince": format_time(START - 50), "runningGpuType": "V100", "run": 1}
    return job("runs", steps=steps, phase="Running", allocation=place, service=since)


@pytest.fixture
def server() -> ListServer:
    """One node of 8 GPUs, which `runs` has for 1000 more seconds; `waits` wants them."""
    pod = pod_object("runs-1-0", node="n1", gpus=8, labels=worker_labels("runs"), phase="Running")
    policy = {"metadata": {"name": "default"}, "spec": {"policy": "fifo", "roundSeconds": 60}}
    queue = {"position": 1, "reason": "NoFreeGPU", "message": "waits", "estimatedStart": format_time(START + 1800)}
    return ListServer(
        trainingjobs=[runs(), job("waits", steps=500, queue=queue)],
        nodes=[node_object("n1")], pods=[pod], schedulingpolicies=[policy],
    )  # fmt: skip


@pytest.fixture
def say(server: ListServer, tmp_path: Path) -> Iterator[Say]:
    with serving(server, tmp_path) as kubeconfig:
        yield lambda *words, **more: CliRunner().invoke(main, [*words, "--kubeconfig", str(kubeconfig)], **more)


def data(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_when_says_when_a_waiting_job_starts_and_ends(say: Say) -> None:
    told = data(say("when", "waits", "-o", "json", "--draws", "3"))
    now = told["now"]
    assert (told["job"], told["state"], told["by"], told["draws"]) == ("team/waits", "waiting", "command", 3)
    assert 1000 <= told["start_without_arrivals"] - now <= 1100
    assert told["finish_without_arrivals"] - told["start_without_arrivals"] == pytest.approx(500, abs=5)
    assert told["start"]["p10"] <= told["start"]["p50"] <= told["start"]["p90"]


def test_when_in_words(say: Say) -> None:
    told = say("when", "waits", "--draws", "2")
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == "team/waits: waiting"
    assert lines[1].split() == ["10", "%", "50", "%", "90", "%", "IF", "NO", "JOB", "COMES"]
    assert [line.split()[0] for line in lines[3:5]] == ["start", "end"]
    assert lines[-1] == "2 draws of further jobs"
    assert "Z" in say("when", "waits", "--draws", "2", "-o", "wide").stdout
    assert "note" not in told.stderr


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"status": {"phase": "Queued"}}, "NotProfiled"),
        ({"spec": {"gpus": 9, "steps": 5, "template": {}}}, "NeverFits"),
        ({"status": {"phase": "Succeeded"}}, "Finished"),
        ({"status": {"phase": "Pending"}}, "NotPlanned"),
    ],
)
def test_what_is_not_known_is_said(server: ListServer, say: Say, change: dict[str, Any], unknown: str) -> None:
    server.objects["trainingjobs"][1] |= change
    assert data(say("when", "waits", "-o", "json"))["unknown"] == unknown
    assert f"not known: {unknown}: " in say("when", "waits").stdout


def test_who_may_not_see_nodes_gets_the_estimate_of_the_cluster(server: ListServer, say: Say) -> None:
    server.hidden = {"nodes"}
    told = data(say("when", "waits", "-o", "json"))
    assert (told["by"], told["start"]["p50"]) == ("extender", pytest.approx(START + 1800, abs=1))
    assert "by the extender's newest estimate" in say("when", "waits").stdout
    assert data(say("when", "runs", "-o", "json"))["unknown"] == "Hidden"
    refused = say("what-if", "--add-nodes", "V100=1")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "you may not list nodes" in refused.stderr


def test_what_a_user_may_not_see_is_said(server: ListServer, say: Say) -> None:
    server.elsewhere, server.hidden = {"trainingjobs", "pods"}, {"schedulingpolicies", "gpupools"}
    told = say("when", "waits", "--draws", "1")
    assert told.exit_code == 0, told.output
    notes = told.stderr.splitlines()
    assert [line.split(":")[0] for line in notes] == ["note"] * 4
    assert "TrainingJobs of team only" in notes[0]
    assert "SchedulingPolicy" in notes[2]
    assert "gpupools" in notes[3]


def test_what_if_a_job_came(say: Say, tmp_path: Path) -> None:
    manifest = {"kind": "TrainingJob", **job_object("new", gpus=8, spec={"steps": 300})}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(manifest))
    told = data(say("what-if", "-f", str(tmp_path / "job.yaml"), "--json"))
    starts = {one["job"]: one["start_s"] for one in told["jobs"]}
    assert starts["team/new"][0] is None
    assert starts["team/new"][1] >= starts["team/waits"][1] + 500
    assert starts["team/waits"][0] == pytest.approx(starts["team/waits"][1], abs=5)


def test_what_if_refuses_a_job_that_is_there_and_one_that_is_none(say: Say, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({"kind": "TrainingJob", **job_object("waits")}))
    assert "there is a TrainingJob team/waits already" in say("what-if", "-f", str(file)).stderr
    file.write_text(yaml.safe_dump({"kind": "TrainingJob", "metadata": {"name": "x"}, "spec": {"gpus": 0}}))
    assert "--filename: gpus" in say("what-if", "-f", str(file)).stderr
    assert "a snapshot has no cluster" in say("what-if", "s.json", "-f", str(file)).stderr


def test_what_if_nodes_came(say: Say) -> None:
    told = data(say("what-if", "--add-nodes", "V100=1", "--json"))
    before, after = next(one["start_s"] for one in told["jobs"] if one["job"] == "team/waits")
    assert after < before - 500


def test_policy_set_shows_what_would_change_and_applies_it(server: ListServer, say: Say) -> None:
    server.objects["trainingjobs"].append(job("small", steps=10, queue={"position": 2, "reason": "NoFreeGPU"}))
    done = say("policy", "set", "policy=srtf")
    assert done.exit_code == 0, done.output
    assert "team/small" in done.stdout
    assert "average JCT" in done.stdout
    assert done.stdout.splitlines()[-1] == "schedulingpolicy.kube-synergy.dev/default changed"
    assert server.patches == [{"spec": {"policy": "srtf"}}]


@pytest.mark.parametrize(
    "case",
    [((), "n\n", 0), ((), "y\n", 1), (("--yes",), "", 1), (("--dry-run", "server"), "", 0)],
)
def test_policy_set_asks_on_a_terminal(
    server: ListServer, say: Say, monkeypatch: pytest.MonkeyPatch, case: tuple[tuple[str, ...], str, int]
) -> None:
    words, answer, patches = case
    monkeypatch.setattr(policy, "_on_a_terminal", lambda: True)
    done = say("policy", "set", "policy=srtf", *words, input=answer)
    assert ("change the policy?" in done.stdout) is bool(answer)
    assert len(server.patches) == patches


def test_policy_set_changes_nothing_in_a_dry_run(server: ListServer, say: Say) -> None:
    done = say("policy", "set", "policy=srtf", "--dry-run", "server")
    assert "changed (dry run)" in done.stdout
    assert not server.patches


def test_policy_set_works_where_no_forecast_can_be_made(server: ListServer, say: Say) -> None:
    server.hidden = {"nodes"}
    done = say("policy", "set", "policy=srtf")
    assert "what the change would do is not known: you may not list nodes" in done.stderr
    assert len(server.patches) == 1
