"""What a job says of itself, on an API server of our own whose answers change."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import CancelledError
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml

import kube_synergy
from kube_synergy.live import following
from support.api_server.list_server import ListServer, Object, serving
from support.extender.cluster import NOW, allocation, job_object, node_object, pod_object, share, worker_labels
from synergy_api.timestamps import format_time

Where = dict[str, Any]
FINISHED = {"type": "Finished", "status": "True", "reason": "BackoffLimitExceeded", "message": "4 runs failed"}
CONDITION = {**FINISHED, "lastTransitionTime": format_time(NOW)}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LEAST_POLL_S", 0.02)


@pytest.fixture
def server() -> ListServer:
    return ListServer(trainingjobs=[job_object("j")], nodes=[node_object("n1")], pods=[], schedulingpolicies=[])


@pytest.fixture
def where(server: ListServer, tmp_path: Path) -> Iterator[Where]:
    with serving(server, tmp_path) as kubeconfig:
        yield {"kubeconfig": str(kubeconfig)}


@pytest.fixture
def job(where: Where) -> kube_synergy.Job[Any]:
    return kube_synergy.job("j", **where)


def becomes(server: ListServer, *statuses: Object) -> None:
    """From the second look on the job has each of these statuses in turn; an empty one: the job is gone."""
    answer, left = server.get, [job_object("j")["status"], *statuses]

    def get(path: str) -> tuple[int, Object]:
        if path.endswith("/trainingjobs/j"):
            status = left.pop(0) if len(left) > 1 else left[0]
            server.objects["trainingjobs"] = [job_object("j", status=status)] if status else []
        return answer(path)

    server.get = get  # type: ignore[method-assign]


def runs(steps: int) -> Object:
    place = allocation(share("n1", gpus=1), until=NOW + 600)
    progress = {"run": 1, "steps": steps, "stepsPerSecond": 2.0, "updatedAt": format_time(NOW)}
    return {"phase": "Running", "allocation": place, "progress": progress}


def test_the_namespace_is_that_of_the_context(job: kube_synergy.Job[Any]) -> None:
    assert (job.namespace, job.name, repr(job)) == ("team", "j", "<Job team/j>")


def test_a_status_has_the_fields_and_a_line(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    server.objects["trainingjobs"] = [job_object("j", status=runs(30))]
    status = job.status()
    assert (status.phase, status.steps_done, status.steps, status.gpus_held, status.gpu_type, status.run) == (
        "Running", 30, 1000, 1, "V100", 1,
    )  # fmt: skip
    assert not status.finished
    assert str(status).startswith("Running: it runs on 1 V100 GPU of 1 node")


def test_a_status_is_one_line_that_a_terminal_shows_as_it_is(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    failed = {"phase": "Failed", "conditions": [{**CONDITION, "message": "a\n\x1b]0;b\x07"}]}
    server.objects["trainingjobs"] = [job_object("j", status=failed)]
    status = job.status()
    assert (str(status), status.message) == (
        r"Failed: BackoffLimitExceeded: a\n\x1b]0;b\x07", "a\n\x1b]0;b\x07",
    )  # fmt: skip


def test_wait_tells_each_change_and_ends_with_the_job(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    told: list[str] = []
    becomes(server, runs(1), runs(2), {"phase": "Succeeded"})
    assert job.wait(20, tell=told.append).phase == "Succeeded"
    assert [line.partition(":")[0] for line in told] == ["Queued", "Running", "Succeeded"]


def test_wait_for_a_phase(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    becomes(server, runs(1))
    assert job.wait(20, until="Running").phase == "Running"


def test_states_are_every_look(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    becomes(server, runs(5), {"phase": "Succeeded"})
    phases = [status.phase for status in job.states()]
    assert list(dict.fromkeys(phases)) == ["Queued", "Running", "Succeeded"]


def test_a_wait_that_takes_too_long_says_where_the_job_stands(job: kube_synergy.Job[Any]) -> None:
    with pytest.raises(kube_synergy.JobTimeoutError, match="team/j is not Succeeded after 2 s; now it is Queued"):
        job.wait(2)
    with pytest.raises(TimeoutError, match="team/j is not Running after 0 s"):
        job.wait(0, until="Running")


def test_a_job_that_fails_is_an_error(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    becomes(server, {"phase": "Failed", "conditions": [CONDITION]})
    with pytest.raises(
        kube_synergy.JobFailedError, match="team/j failed: BackoffLimitExceeded: 4 runs failed"
    ) as caught:
        job.result(20)
    assert (caught.value.reason, caught.value.traceback) == ("BackoffLimitExceeded", "")


def test_a_job_that_is_deleted_meanwhile(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    becomes(server, {})
    with pytest.raises(kube_synergy.JobDeletedError, match="team/j was deleted before it ended"):
        job.wait(20)
    with pytest.raises(kube_synergy.JobNotFoundError):
        job.wait(20)


def test_a_job_whose_pods_are_gone_has_no_result(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    server.objects["trainingjobs"] = [job_object("j", status={"phase": "Succeeded"})]
    with pytest.raises(kube_synergy.NoResultError, match="j has no result in its log"):
        job.result(20)


def worker(run: int, rank: int) -> Object:
    return pod_object(f"j-{run}-{rank}", labels=worker_labels("j", run, rank))


def record(**fields: Any) -> str:
    return f"::kube-synergy-result:: 1/1 {json.dumps(fields)}"


@pytest.mark.parametrize("follow", [False, True])
def test_logs_come_by_run_and_rank(server: ListServer, job: kube_synergy.Job[Any], follow: bool) -> None:
    server.objects["pods"] = [worker(2, 1), worker(2, 0), worker(1, 0), worker(2, 2)]
    server.logs = {"j-1-0": "a\nb\n", "j-2-0": f"c\n{record(value=1)}\n", "j-2-1": "d" * 300_000}
    lines = list(job.log_lines(follow=follow))
    assert [(one.run, one.rank, one.text) for one in lines if one.run == 1] == [(1, 0, "a"), (1, 0, "b")]
    assert [one.run for one in lines] == [1, 1, 2, 2, 2]
    newest = {one.rank: one.text for one in lines[2:]}
    assert (newest[0], len(newest[1])) == ("c", 300_000)
    assert [one.rank for one in lines if one.problem] == [2]  # the server knows no log of it
    assert job.logs(rank=0).splitlines()[-1] == "[run 2 rank 0] c"


def test_the_result_is_that_of_the_newest_run(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    server.objects["trainingjobs"] = [job_object("j", status={"phase": "Succeeded"})]
    server.objects["pods"] = [worker(2, 1), worker(2, 0), worker(1, 0)]
    server.logs = {"j-1-0": record(value="old"), "j-2-0": f"x\n\n{record(value=[1.5])}\nbye\n", "j-2-1": "y\n"}
    assert job.result(20) == [1.5]
    server.logs["j-2-0"] = record(unusable="too large")
    with pytest.raises(kube_synergy.NoResultError, match="j: too large; return plain values"):
        job.result(20)
    server.logs["j-2-0"] = record(traceback="T")
    with pytest.raises(kube_synergy.NoResultError, match="the newest run ended with an exception"):
        job.result(20)


def test_the_traceback_of_any_rank_comes_with_the_failure(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    server.objects["trainingjobs"] = [job_object("j", status={"phase": "Failed", "conditions": [CONDITION]})]
    server.objects["pods"] = [worker(1, 0), worker(1, 1)]
    server.logs = {"j-1-0": "lost its peer\n", "j-1-1": record(traceback="ValueError: here")}
    with pytest.raises(kube_synergy.JobFailedError, match="4 runs failed\nValueError: here") as caught:
        job.wait(20)
    assert caught.value.traceback == "ValueError: here"
    lost = "Traceback\nsynergy_job.gang.base.PeerLostError: rank 1 of j was lost after step 20"
    server.logs["j-1-0"] = record(traceback=lost)
    with pytest.raises(kube_synergy.JobFailedError, match="4 runs failed\nValueError: here"):
        job.wait(20)
    server.logs["j-1-1"] = "killed\n"
    with pytest.raises(kube_synergy.JobFailedError, match="rank 1 of j was lost"):
        job.wait(20)


def test_why_and_forecast(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    queue = {"position": 1, "reason": "NoFreeGPU", "message": "waits", "estimatedStart": format_time(NOW)}
    server.objects["trainingjobs"] = [job_object("j", status={"queue": queue})]
    assert job.why().reason == "NoFreeGPU"
    assert job.forecast(draws=1).unknown == "NotProfiled"
    server.hidden = {"nodes"}
    assert job.forecast().by == "extender"


def test_what_may_not_be_seen_is_an_error_of_its_own(server: ListServer, where: Where) -> None:
    with pytest.raises(kube_synergy.JobNotFoundError, match=r'"nobody" not found'):
        kube_synergy.job("nobody", **where)
    server.elsewhere = {"trainingjobs"}
    kube_synergy.job("j", **where).why()
    server.hidden = {"trainingjobs"}
    with pytest.raises(kube_synergy.ForbiddenError, match="trainingjobs is forbidden; ask an administrator"):
        kube_synergy.job("j", **where).why()


def test_what_is_hidden_is_said_in_the_log(
    server: ListServer, job: kube_synergy.Job[Any], caplog: pytest.LogCaptureFixture
) -> None:
    queue = {"position": 1, "reason": "NoFreeGPU", "message": "waits"}
    server.objects["trainingjobs"] = [job_object("j", status={"queue": queue})]
    server.elsewhere = {"trainingjobs"}
    job.why()
    assert "only those of team are considered" in caplog.text
    caplog.clear()
    job.forecast(draws=1)
    assert "you may list TrainingJobs of team only" in caplog.text


def test_a_job_of_another_version_is_an_error(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    server.objects["trainingjobs"] = [job_object("j", status={"phase": "Odd"})]
    with pytest.raises(kube_synergy.SynergyError, match="of another version of kube-synergy: phase: "):
        job.status()


def test_no_cluster_is_an_error_of_its_own(where: Where, tmp_path: Path) -> None:
    with pytest.raises(kube_synergy.UnreachableError, match="there is no file"):
        kube_synergy.job("j", kubeconfig=str(tmp_path / "none"))
    with pytest.raises(kube_synergy.UnreachableError, match="there is no context 'x'"):
        kube_synergy.job("j", context="x", **where)
    config = yaml.safe_load(Path(where["kubeconfig"]).read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    (tmp_path / "away").write_text(yaml.safe_dump(config))
    with pytest.raises(kube_synergy.UnreachableError, match="the API server does not answer"):
        kube_synergy.job("j", kubeconfig=str(tmp_path / "away"))


def test_an_api_server_that_is_away_for_a_while_is_waited_for(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    answer, failures = server.get, iter([(503, {"reason": "ServiceUnavailable", "message": "later"})] * 3)
    server.get = lambda path: next(failures, None) or answer(path)  # type: ignore[method-assign]
    becomes(server, {"phase": "Succeeded"})
    assert job.wait(20).finished
    assert next(failures, None) is None, "it was never away"


async def test_the_same_with_coroutines(server: ListServer, where: Where) -> None:
    job = await kube_synergy.aio.job("j", **where)
    becomes(server, {"phase": "Succeeded"})
    assert [one.phase async for one in job.states()][-1] == "Succeeded"
    assert (await asyncio.wait_for(job.wait(), 5)).finished


async def test_plain_calls_work_where_a_loop_runs(job: kube_synergy.Job[Any]) -> None:
    assert job.status().phase == "Queued"


def test_watch_prints_lines_in_plain_python(
    server: ListServer, job: kube_synergy.Job[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    becomes(server, runs(1), {"phase": "Succeeded"})
    shown = job.watch()
    shown.join(20)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("<Job team/j>: Queued")
    assert lines[-1] == "<Job team/j>: Succeeded"
    assert shown.text == "Succeeded"


@pytest.mark.parametrize(("progress_s", "printed"), [(30.0, 3), (0.0, 5)])
def test_watch_prints_phases_and_now_and_then_progress(
    server: ListServer,
    *,
    job: kube_synergy.Job[Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    progress_s: float,
    printed: int,
) -> None:
    monkeypatch.setattr("kube_synergy.show.watch.PROGRESS_S", progress_s)
    becomes(server, runs(1), runs(30), runs(60), {"phase": "Succeeded"})
    job.watch().join(20)
    assert len(capsys.readouterr().out.splitlines()) == printed


def test_watch_ends_with_what_went_wrong(
    server: ListServer, job: kube_synergy.Job[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    becomes(server, {})
    job.watch().join(20)
    assert "was deleted" in capsys.readouterr().out


def test_a_watch_can_be_stopped(job: kube_synergy.Job[Any]) -> None:
    shown = job.watch()
    shown.stop()
    with pytest.raises(CancelledError):
        shown.join(5)


def test_the_widget_shows_phase_and_progress(
    server: ListServer, job: kube_synergy.Job[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_synergy.show.watch.in_notebook", lambda: True)
    becomes(server, runs(30), {**runs(1000), "phase": "Succeeded"})
    shown = job.watch()
    shown.join(20)
    html = shown.widget.value
    assert "Succeeded" in html
    assert "step 1000 of 1000" in html


@pytest.mark.parametrize("name", ["", "a/b", "../../pods/j", "j?limit=1", 5])
def test_what_cannot_be_a_name_asks_no_cluster(where: Where, name: Any) -> None:
    with pytest.raises(kube_synergy.InvalidJobError, match=r"name: .* cannot be one"):
        kube_synergy.job(name, **where)
    with pytest.raises(kube_synergy.InvalidJobError, match=r"namespace: .* cannot be one"):
        kube_synergy.job("j", **where, namespace=name or "A")


def test_a_phase_that_there_is_not_is_not_waited_for(job: kube_synergy.Job[Any]) -> None:
    until: Any = "running"
    with pytest.raises(ValueError, match="until: phase 'running' is not there; did you mean 'Running'"):
        job.wait(5, until=until)


def test_a_fork_of_a_process_that_has_asked_can_ask_too(job: kube_synergy.Job[Any]) -> None:
    assert job.status().phase == "Queued"
    child = get_context("fork").Process(target=job.status)
    child.start()
    child.join(10)
    alive = child.is_alive()
    child.kill()
    assert (alive, child.exitcode) == (False, 0)
