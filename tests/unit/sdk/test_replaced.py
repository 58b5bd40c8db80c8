"""A job that is deleted while somebody asks for it, and another one that then has its name."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kube_synergy
from kube_synergy.live import following
from kube_synergy.live.submitting import delete, set_suspend
from support.api_server.list_server import ListServer, Object, serving
from support.extender.cluster import job_object, pod_object, worker_labels
from synergy_api.names import ANNOTATION_JOB_UID
from synergy_kube import Conflict, NotFound
from synergy_view.seen import read

RECORD = '::kube-synergy-result:: 1/1 {"value": "%s"}'


@pytest.fixture
def server() -> ListServer:
    return ListServer(trainingjobs=[job_object("j")], pods=[])


@pytest.fixture
def job(server: ListServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[kube_synergy.Job[Any]]:
    monkeypatch.setattr(following, "LEAST_POLL_S", 0.02)
    with serving(server, tmp_path) as kubeconfig:
        yield kube_synergy.job("j", kubeconfig=str(kubeconfig))


def replace(server: ListServer) -> None:
    server.objects["trainingjobs"] = [job_object("j", uid="later", status={"phase": "Succeeded"})]


def worker(uid: str, run: int) -> Object:
    return pod_object(f"{uid}-{run}-0", labels=worker_labels("j", run), made_for=uid)


@pytest.mark.parametrize("ask", [kube_synergy.Job.wait, kube_synergy.Job.result, lambda job: list(job.states())])
def test_a_later_job_of_the_name_does_not_end_the_wait(
    server: ListServer, job: kube_synergy.Job[Any], ask: Callable[[kube_synergy.Job[Any]], object]
) -> None:
    answer, looks = server.get, iter(range(9))

    def get(path: str) -> tuple[int, Object]:
        if path.endswith("/trainingjobs/j") and next(looks) == 1:
            replace(server)
        return answer(path)

    server.get = get  # type: ignore[method-assign]
    server.objects["pods"], server.logs = [worker("later", 1)], {"later-1-0": RECORD % "of another"}
    with pytest.raises(kube_synergy.JobDeletedError, match="team/j was deleted before it ended"):
        ask(job)
    assert next(looks) == 2


@pytest.mark.parametrize(
    "call",
    [kube_synergy.Job.status, kube_synergy.Job.why, kube_synergy.Job.forecast, kube_synergy.Job.logs,
     kube_synergy.Job.suspend, kube_synergy.Job.resume, kube_synergy.Job.wait],
)  # fmt: skip
def test_a_later_job_of_the_name_is_not_found(
    server: ListServer, job: kube_synergy.Job[Any], call: Callable[[kube_synergy.Job[Any]], object]
) -> None:
    replace(server)
    with pytest.raises(kube_synergy.JobNotFoundError, match="team/j was deleted, and another TrainingJob has its name"):
        call(job)
    assert server.patches == []


async def test_a_job_that_is_replaced_after_the_look_is_not_suspended() -> None:
    class Client:
        async def merge_patch(self, *asked: Any) -> None:
            assert asked[2] == {"metadata": {"uid": "uid-j"}, "spec": {"suspend": True}}
            raise Conflict(409, "Conflict", "the UID in the precondition (uid-j) does not match later")

    class One:
        client, own_namespace = Client(), "team"

        async def job(self, *_: object) -> object:
            return read(job_object("j"))

    cluster: Any = One()
    with pytest.raises(NotFound, match="the job j was replaced"):
        await set_suspend(cluster, "j", suspend=True)


async def test_a_later_job_of_the_name_is_not_deleted() -> None:
    class Client:
        async def delete(self, *_: object, uid: str) -> None:
            assert uid == "uid-j"
            raise Conflict(409, "Conflict", "the UID in the precondition (uid-j) does not match later")

    cluster: Any = type("Cluster", (), {"client": Client(), "own_namespace": "team"})
    assert not await delete(cluster, "j", "uid-j")


def test_the_result_is_not_that_of_an_earlier_job_whose_pods_are_still_there(
    server: ListServer, job: kube_synergy.Job[Any]
) -> None:
    server.objects["trainingjobs"][0]["status"]["phase"] = "Succeeded"
    server.objects["pods"] = [worker("earlier", 7), worker("uid-j", 2)]
    server.logs = {"earlier-7-0": RECORD % "earlier", "uid-j-2-0": RECORD % "mine"}
    assert job.result() == "mine"
    assert [(line.run, line.text) for line in job.log_lines()] == []
    server.logs["uid-j-2-0"] = "hello"
    assert [(line.run, line.text) for line in job.log_lines()] == [(2, "hello")]


def test_pods_of_a_managed_object_have_another_owner(server: ListServer, job: kube_synergy.Job[Any]) -> None:
    pods = [pod_object(f"p{run}", labels=worker_labels("j", run)) for run in (1, 2, 3)]
    server.objects["pods"], server.logs = pods, {f"p{run}": f"run {run}" for run in (1, 2, 3)}
    pods[0]["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "uid-of-it", "controller": True}]
    pods[1]["metadata"]["annotations"] = {ANNOTATION_JOB_UID: "uid-j"}
    pods[2]["metadata"]["annotations"] = {ANNOTATION_JOB_UID: "earlier"}
    assert [line.text for line in job.log_lines()] == ["run 1", "run 2"]
