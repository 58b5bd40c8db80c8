"""Commands about the past ask the dashboard through the API server, and go by objects and events where that fails."""

import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.api_server.list_server import ListServer, serving
from support.extender.cluster import job_object, node_object
from synergy_api.timestamps import format_time
from synergy_cli.main import main

Say = Callable[..., Result]
COMMANDS = (("history", "a"), ("rounds",), ("usage",), ("export", "--out", "past"))
MATRIX = {"gpuType": "V100", "cpuMillis": [1000], "memoryBytes": [1 << 30], "stepsPerSecond": [[1.0]]}


@pytest.fixture
def server() -> ListServer:
    status = {"profile": {"state": "Complete", "matrices": [MATRIX]}}
    new = job_object("a", status=status, creationTimestamp=format_time(time.time() - 60))
    return ListServer(trainingjobs=[new], nodes=[node_object("n1")])


@pytest.fixture
def say(server: ListServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Say]:
    monkeypatch.chdir(tmp_path)
    with serving(server, tmp_path) as kubeconfig:
        yield lambda *words: CliRunner().invoke(main, [*words, "--kubeconfig", str(kubeconfig)])


def answers(document: object) -> tuple[int, bytes]:
    return 200, json.dumps(document).encode()


def zipped(**files: str) -> tuple[int, bytes]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as target:
        for name, text in files.items():
            target.writestr(name.replace("_", "."), text)
    return 200, content.getvalue()


def test_the_history_of_a_job_comes_from_the_record(server: ListServer, say: Say) -> None:
    happened = {"at_s": 1e9, "what": "Revoked", "message": "run 1 is told to leave"}
    server.record["jobs/team/gone/history"] = answers({"happenings": [happened], "totals": ["2 runs"]})
    done = say("history", "gone")
    assert done.exit_code == 0, done.output
    assert "Revoked  run 1 is told to leave" in done.stdout
    assert done.stdout.endswith("2 runs\n")
    assert done.stderr == ""
    assert server.asked == [("", "t")]


def test_rounds_come_from_the_record(server: ListServer, say: Say) -> None:
    decided = {"at_s": 610.0, "job": "team/a", "what": "resized", "reason": "Resized", "message": "m"}
    page = {"now": 1.0, "recorded_since_s": 0.0, "rounds": [{"index": 2, "starts_s": 600.0, "decided": [decided]}]}
    server.record["decisions"] = answers(page)
    assert json.loads(say("rounds", "-o", "json").stdout) == page["rounds"]
    assert "Resized" in say("rounds", "-A", "--last", "3").stdout
    assert [query for query, _ in server.asked] == ["rounds=10&namespace=team", "rounds=3"]


def test_usage_comes_from_the_record_and_says_where_that_begins(server: ListServer, say: Say) -> None:
    row = {"tenant": "vision", "namespace": "team", "jobs": 4, "finished": 2, "gpu_hours": 3.0, "waiting_hours": 1.0,
           "gain": 1.25, "preemptions": 7}  # fmt: skip
    now = time.time()
    page = {"now": now, "since_s": now - 60, "recorded_since_s": now - 3600, "rows": [row]}
    server.record["usage"] = answers(page)
    done = say("usage", "--since", "1h")
    assert done.stdout.splitlines()[-1].split() == ["vision", "team", "4", "2", "3.0", "1.0", "1.25x", "7"]
    assert "the history begins at" in say("usage", "--since", "2h").stderr
    assert "'long' is no time" in say("usage", "--since", "long").stderr


def test_the_export_is_unpacked_and_says_how_to_simulate_it(server: ListServer, say: Say, tmp_path: Path) -> None:
    server.objects["schedulingpolicies"] = [
        {"metadata": {"name": "default"}, "spec": {"policy": "las", "roundSeconds": 60}}
    ]
    measured = {"ended": 1, "avg_jct_s": 90.0, "start_s": 2.25, "restart_s": 0.0}
    trace = "job_id,arrival_s,gpus,model,steps\nteam/gone,7,1,m,60\n"
    matrix = {"cpus": [1], "memory_gib": [1], "steps_per_s": [[1.0]]}
    pool = {"name": "v", "gpu_type": "V100", "nodes": 1, "gpus_per_node": 1, "cpus_per_node": 8,
            "memory_gib_per_node": 9}  # fmt: skip
    server.record["export"] = zipped(
        trace_csv=trace, profiles_json=json.dumps({"models": {"m": {"V100": {"1": matrix}}}}),
        cluster_yaml=json.dumps({"pools": [pool]}),
        notes_txt="team/lost: is left out\n", measured_json=json.dumps(measured),
    )  # fmt: skip
    done = say("export", "--out", "past")
    assert done.exit_code == 0, done.output
    first, second, third = done.stdout.splitlines()
    assert first == "1 job written: past/trace.csv, past/profiles.json, past/cluster.yaml"
    assert second == "1 of them ended, on average after 90s"
    assert "note: team/lost: is left out" in done.stderr
    assert third.startswith("the same again: kube-synergy simulate --trace past/trace.csv")
    words = third.removeprefix("the same again: kube-synergy ").split()
    assert words[words.index("--policy") + 1] == "las"
    assert words[words.index("--start-overhead") + 1] == "2.25"
    assert "--preemption-overhead" not in words
    server.objects["schedulingpolicies"][0]["spec"] |= {"policy": "max-min-fairness", "agnostic": True}
    words = say("export", "--out", "past").stdout.splitlines()[2].partition("kube-synergy ")[2].split()
    assert "--agnostic" in words
    simulated = CliRunner().invoke(main, [*words, "--json"])
    assert simulated.exit_code == 0, simulated.output
    assert json.loads(simulated.stdout)["avg_jct_s"] == pytest.approx(62.25)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_without_a_dashboard_objects_and_events_are_asked_and_that_is_said(say: Say, words: tuple[str, ...]) -> None:
    done = say(*words)
    assert done.exit_code == 0, done.output
    told = (
        "only what objects and events still tell, because the dashboard's history cannot be asked: it is not installed"
    )
    assert told in done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("code", "body", "told"),
    [
        (401, {"error": "the API server refuses the token"}, "refuses the token"),
        (403, {"error": "ann may not get"}, "ann may not get"),
        (503, {"kind": "Status", "reason": "ServiceUnavailable", "message": "no pod"}, "it does not answer: no pod"),
        (404, {"kind": "Status", "reason": "NotFound", "message": "not found"}, "no dashboard is installed"),
    ],
)
def test_what_the_dashboard_refuses_is_said(
    server: ListServer, say: Say, code: int, body: dict[str, str], told: str
) -> None:
    server.record["usage"] = code, json.dumps(body).encode()
    done = say("usage")
    assert told in done.stderr
    assert "team" in done.stdout


def test_a_job_that_never_was_is_said_by_the_api_server(server: ListServer, say: Say) -> None:
    server.record["usage"] = answers({})
    done = say("history", "nobody")
    assert done.exit_code == 1
    assert 'trainingjobs.kube-synergy.dev "nobody" not found' in done.stderr
