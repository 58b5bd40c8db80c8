"""What users write into their objects reaches the terminal of whoever asks as text, never as a command to it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from support.api_server.list_server import ListServer, Object, serving
from support.extender.cluster import NOW, allocation, job_object, node_object, pod_object, share, worker_labels
from synergy_api.timestamps import format_time
from synergy_cli.live.cluster import doctor
from synergy_cli.live.jobs import submit
from synergy_cli.main import main
from synergy_view.doctor import Check
from synergy_view.seen import read

Say = Callable[..., Result]
HOSTILE = "it\x1b]0;owned\x07 \x9b2J\r\nforged  row\t\u202e"
SHOWN = r"it\x1b]0;owned\x07 \x9b2J\r\nforged  row\t\u202e"


def ended() -> Object:
    """A job that has failed, in the words of its termination message."""
    failed = {"type": "Finished", "status": "True", "reason": HOSTILE, "message": HOSTILE}
    return job_object("ended", status={"phase": "Failed", "conditions": [{**failed, "lastTransitionTime": AT}]})


AT = format_time(NOW)
WAITS = {"queue": {"position": 1, "reason": "NoFreeGPU", "message": HOSTILE}}
EVENT = {
    "metadata": {"name": "e", "namespace": "team"}, "lastTimestamp": AT, "reason": "WorkersRunning", "message": HOSTILE,
    "involvedObject": {"kind": "TrainingJob", "namespace": "team", "name": "ended", "uid": "uid-ended"},
}  # fmt: skip
NOT_VALID = {"type": "Valid", "status": "False", "reason": "Odd", "message": HOSTILE, "lastTransitionTime": AT}


@pytest.fixture
def server() -> ListServer:
    progress = {"run": 1, "steps": 1, "stepsPerSecond": 2.0, "updatedAt": AT, "metrics": {HOSTILE: 1.0}}
    runs = {"phase": "Running", "allocation": allocation(share("n1")), "progress": progress}
    return ListServer(
        trainingjobs=[ended(), job_object("waits", status=WAITS), job_object("runs", status=runs)],
        nodes=[node_object("n1")],
        events=[EVENT],
        tenants=[{"metadata": {"name": "vision"}, "spec": {}, "status": {"conditions": [NOT_VALID]}}],
        schedulingpolicies=[{"metadata": {"name": "default"}, "spec": {}, "status": {"conditions": [NOT_VALID]}}],
    )


@pytest.fixture
def say(server: ListServer, tmp_path: Path) -> Iterator[Say]:
    with serving(server, tmp_path) as kubeconfig:
        yield lambda *words: CliRunner().invoke(main, [*words, "--kubeconfig", str(kubeconfig)])


def lines(told: str) -> list[str]:
    """The lines, after a look for what a terminal obeys and for lines that the cluster's texts make."""
    assert {one for one in told if one != "\n" and not one.isprintable()} == set()
    found = told.split("\n")
    assert [line for line in found if line.lstrip().startswith("forged")] == []
    return found


@pytest.mark.parametrize(
    "words",
    [("queue", "-A", "-o", "wide"), ("why", "ended"), ("top", "jobs"), ("history", "ended"), ("rounds", "-A"),
     ("tenants",), ("policy", "show")],
    ids=lambda words: words[0],
)  # fmt: skip
def test_messages_are_shown_with_escapes(say: Say, words: tuple[str, ...]) -> None:
    done = say(*words)
    assert done.exit_code == 0, done.output
    assert [line for line in lines(done.output) if SHOWN in line]


def test_the_checks_of_the_doctor_are_shown_with_escapes(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "ask", lambda *_: [Check("GPUPools", "warning", HOSTILE, HOSTILE)])
    first, second, _ = lines(say("doctor").output)
    assert first == f"warning  GPUPools  {SHOWN}"
    assert second.endswith(f"to do: {SHOWN}")


def test_notes_and_errors_are_shown_with_escapes(server: ListServer, say: Say) -> None:
    server.objects["trainingjobs"][2]["status"]["progress"]["metrics"] = {HOSTILE: "no number"}
    left_out = say("queue")
    assert left_out.exit_code == 0, left_out.output
    (note,) = left_out.stderr.splitlines()
    assert note.startswith("note: team/runs is left out")
    assert SHOWN in note
    assert SHOWN in lines(say("why", "runs").stderr)[0]
    server.get = lambda _: (403, {"reason": "Forbidden", "message": HOSTILE})  # type: ignore[method-assign]
    assert lines(say("queue").stderr) == [f"Error: {SHOWN}", ""]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_data_has_the_text_itself_and_no_control_characters(server: ListServer, say: Say, output: str) -> None:
    controls = "".join(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066))
    server.objects["trainingjobs"][1]["status"]["queue"]["message"] = f"a{controls}b"
    told = say("queue", "-o", output).stdout
    assert {one for one in told if one < " " or one >= "\x7f"} == {"\n"}
    (row,) = json.loads(told) if output == "json" else yaml.safe_load(told)
    assert row["message"] == f"a{controls}b"


def test_logs_are_what_the_container_printed(server: ListServer, say: Say) -> None:
    server.objects["pods"] = [pod_object("runs-1-0", labels=worker_labels("runs"))]
    server.logs = {"runs-1-0": "loss 1\x1b]0;title\x07\n"}
    assert say("logs", "runs").stdout == "loss 1\x1b]0;title\x07\n"


def submitted(say: Say, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Result:
    """The end of `submit --wait` for a job that the API server has as `uid-ended`."""

    async def create(*_: object, **__: object) -> object:
        return read(job_object("ended", creationTimestamp=format_time(time.time())))

    monkeypatch.setattr(submit, "create", create)
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump({"kind": "TrainingJob", **job_object("ended")}))
    return say("submit", "-f", str(file), "--wait")


def test_a_submitted_job_that_fails_is_shown_with_escapes(
    say: Say, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    done = submitted(say, monkeypatch, tmp_path)
    assert done.exit_code == 1
    assert lines(done.stderr) == [f"Failed: {SHOWN}: {SHOWN}", ""]


def test_a_submitted_job_is_not_taken_for_a_later_one_of_its_name(
    server: ListServer, say: Say, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.objects["trainingjobs"] = [job_object("ended", uid="later", status={"phase": "Succeeded"})]
    done = submitted(say, monkeypatch, tmp_path)
    assert (done.exit_code, done.stderr) == (1, "Error: team/ended was deleted before it ended\n")
