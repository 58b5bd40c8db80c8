"""Leases with real pod-bound tokens, and the API for people, against the real API server."""

import json
import time
from typing import Any

import pytest

from support.extender.world import GIB, Operator, Replica
from support.on_cluster.service_account import allowed_to_read_jobs
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot_format import parse_snapshot
from synergy_core.plan import plan
from synergy_kube import KubeClient
from synergy_kube.resources import PODS

pytestmark = pytest.mark.integration

REPORT = {"step": 120, "checkpoint_step": 100, "steps_per_second": 2.5, "gpu_uuids": ["GPU-1"], "done": False}


async def test_rank_0_reports_hears_to_train_on_and_its_progress_is_written(
    operator: Operator, extender: Replica, kube_scheduler: object
) -> None:
    await operator.submit("run", gpus=1)
    granted = await operator.allocation("run", state="Granted", admitted=True)
    (pod,) = await operator.start("run", granted)
    await operator.bound(pod["metadata"]["name"])
    await operator.write("run", phase="Running", service={"run": 1, "runningSince": format_time(time.time())})
    headers = {"Authorization": f"Bearer {await operator.token(pod)}"}
    async with extender.api() as api:
        answer = await api.post("/v1/lease", json=REPORT, headers=headers)
        assert answer.status_code == 200, answer.text
        verdict = answer.json()
        assert (verdict["verdict"], verdict["yield_in_s"]) == ("continue", None)
        assert 0 < verdict["next_report_s"] <= 1.5
        assert verdict["lease_remaining_s"] <= 12
        assert verdict["cpu_millis"] == granted["workers"][0]["cpuMillis"]
        progress = await _progress(operator, "run")
        assert (progress["run"], progress["steps"], progress["checkpointSteps"], progress["percent"]) == (
            1,
            120,
            100,
            12,
        )
        lower = await api.post("/v1/lease", json={**REPORT, "step": 90, "done": True}, headers=headers)
        assert lower.status_code == 200
        assert (await operator.job("run"))["status"]["progress"]["steps"] == 120

        await operator.write("run", phase="Queued", service={"run": 1, "endedRun": 1})
        await operator.allocation("run", run=2)
        old = (await api.post("/v1/lease", json=REPORT, headers=headers)).json()
        assert (old["verdict"], old["yield_in_s"]) == ("yield", 0.0)


async def _progress(operator: Operator, name: str) -> dict[str, Any]:
    """The job's progress once its status has it."""

    async def there() -> dict[str, Any] | None:
        found: dict[str, Any] | None = (await operator.job(name))["status"].get("progress")
        return found

    return await eventually(there, seconds=5, what=f"progress of {name}", every=0.05)


async def test_people_see_the_newest_report_before_the_status_has_it(
    operator: Operator, extender: Replica, kube: KubeClient, kube_scheduler: object
) -> None:
    await operator.submit("live")
    granted = await operator.allocation("live", state="Granted", admitted=True)
    (pod,) = await operator.start("live", granted)
    await operator.bound(pod["metadata"]["name"])
    await operator.write("live", phase="Running", service={"run": 1, "runningSince": format_time(time.time())})
    headers = {"Authorization": f"Bearer {await operator.token(pod)}"}
    async with extender.api() as api, allowed_to_read_jobs(kube, operator.namespace):
        assert (await api.post("/v1/lease", json=REPORT, headers=headers)).status_code == 200
        await _progress(operator, "live")
        for step in (130, 140, 150):  # within two seconds: only the first was written
            assert (await api.post("/v1/lease", json={**REPORT, "step": step}, headers=headers)).status_code == 200
        person = {"Authorization": f"Bearer {await operator.token(None, None)}"}
        path = f"/v1/progress/{operator.namespace}"
        newest = (await api.get(f"{path}/live", headers=person)).json()
        assert (newest["source"], newest["steps"]) == ("report", 150)
        assert (await api.get(f"{path}/nobody", headers=person)).status_code == 404
        refused = await api.get(f"{path}/live", headers=headers)
        assert refused.status_code in (401, 403)


async def test_only_a_worker_pods_own_token_is_taken(operator: Operator, extender: Replica) -> None:
    spec = {"containers": [{"name": "c", "image": "fake"}], "nodeSelector": {"type": "kwok"}}
    plain = {"metadata": {"name": "plain"}, "spec": spec}
    pod = await operator.kube.create(PODS, plain, operator.namespace)
    impostor = operator.worker("victim", 1, 0, {"node": "n", "gpus": 1, "cpuMillis": 100, "memoryBytes": GIB})
    impostor["metadata"]["name"] = "impostor"
    false_worker = await operator.kube.create(PODS, impostor, operator.namespace)

    async def known() -> bool:
        return extender.extender.cache.pods.get(operator.namespace, "impostor") is not None

    await eventually(known, seconds=10, what="the pods to be seen")
    tokens = {
        "of a pod that is no worker": (await operator.token(pod), 403),
        "of a pod that says it is another": (await operator.token(false_worker), 403),
        "bound to no pod": (await operator.token(None), 403),
        "for the API server": (await operator.token(pod, audience=None), 401),
        "for somebody else": (await operator.token(pod, audience="vault"), 401),
        "made up": ("eyJhbGciOiJub25lIn0.e30.", 401),
    }
    async with extender.api() as api:
        for story, (token, want) in tokens.items():
            answer = await api.post("/v1/lease", json=REPORT, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == want, story
            assert answer.json()["detail"]


async def test_the_snapshot_is_for_those_who_may_read_jobs_and_can_be_planned_again(
    operator: Operator, extender: Replica, kube: KubeClient
) -> None:
    await operator.submit("seen", gpus=2)
    await operator.allocation("seen", state="Granted")
    token = await operator.token(None, audience=None)
    headers = {"Authorization": f"Bearer {token}"}
    async with extender.api() as api:
        assert (await api.get("/v1/snapshot", headers=headers)).status_code == 403
        async with allowed_to_read_jobs(kube, operator.namespace):

            async def allowed() -> str:
                answer = await api.get("/v1/snapshot", headers=headers)
                return answer.text if answer.status_code == 200 else ""

            text = await eventually(allowed, seconds=15, what="the new role to be known")
            snapshot = parse_snapshot(text)
            job = next(j for j in snapshot.jobs if j.name == f"{operator.namespace}/seen")
            assert job.running is not None
            replayed = plan(snapshot, PlanConfig(policy="fifo", mode="fill"))
            assert job.running in replayed.allocations
            newest = (await api.get("/v1/plan", headers=headers)).json()
            assert newest["plan"]["policy"] == "fifo"
            assert json.dumps(newest["round"]).isdecimal()
