"""What a person with `edit` tries with the fields of a TrainingJob that take from others."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.extender.world import Replica
from support.on_cluster.attacker import ROUND_SECONDS, Attacker, manifest
from support.on_cluster.jobs import reaches, submit
from support.waiting import eventually
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_kube import KubeClient
from synergy_kube.resources import TENANTS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def valid(kube: KubeClient, namespace: str, name: str, reason: str) -> str:
    """The message of the job's condition Valid once it has this reason."""

    async def there() -> str:
        status = (await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}
        found = [one for one in status.get("conditions") or [] if one["type"] == "Valid" and one["reason"] == reason]
        return str(found[0]["message"]) if found else ""

    return await eventually(there, seconds=30, what=f"{name} to be Valid for {reason}")


def planned_of(extender: Replica, namespace: str) -> list[Any]:
    """The namespace's jobs as plans see them."""
    built = build_snapshot(extender.extender.cache.state(), mode="round", now=time.time(), round_s=ROUND_SECONDS)
    return [job for job in built.snapshot.jobs if job.name.startswith(f"{namespace}/")]


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.tenant", {"tenant": "VICTIM"}),
        ("spec.weight", {"weight": 1e6}),
        ("spec.preemption", {"preemption": "Never"}),
        ("spec.slo.deadline", {"slo": {"deadline": TOMORROW}}),
    ],
)
async def test_what_the_tenant_does_not_allow_is_refused_at_submission(
    attacker: Attacker, tenants: dict[str, str], field: str, spec: dict[str, Any]
) -> None:
    if "tenant" in spec:
        spec = {"tenant": tenants["victim"]}
    refused = await attacker.submit(manifest("evil", **spec))
    assert refused.code != 0
    assert f"{field}: " in refused.errors
    assert (await attacker.submit(manifest("good", tenant=tenants["attacker"]))).code == 0
    patch = json.dumps({"spec": spec})
    changed = await attacker.kubectl("patch", "tj", "good", "--type=merge", "-p", patch)
    assert changed.code != 0
    assert f"{field}: " in changed.errors


async def test_what_stood_in_a_job_before_is_not_refused_when_something_else_changes(
    kube: KubeClient, attacker: Attacker, tenants: dict[str, str]
) -> None:
    caps = {"maxWeight": 5, "maxNeverPreemptedGPUs": 1, "deadlines": "Allowed"}
    await kube.merge_patch(TENANTS, tenants["attacker"], {"spec": {"caps": caps}})
    spec = {"weight": 5, "preemption": "Never", "slo": {"deadline": TOMORROW}}

    async def taken() -> bool:
        return (await attacker.submit(manifest("old", **spec))).code == 0

    await eventually(taken, seconds=20, what="the raised caps to be in force")
    lowered = {"maxWeight": 1, "maxNeverPreemptedGPUs": 0, "deadlines": "Denied"}
    await kube.merge_patch(TENANTS, tenants["attacker"], {"spec": {"caps": lowered}})

    async def refused() -> bool:
        return (await attacker.submit(manifest("new", weight=5))).code != 0 or not await attacker.kubectl(
            "delete", "tj", "new", "--wait=false"
        )

    await eventually(refused, seconds=20, what="the lowered caps to be in force")
    suspended = await attacker.kubectl("patch", "tj", "old", "--type=merge", "-p", '{"spec": {"suspend": true}}')
    assert suspended.code == 0, suspended.errors


async def test_another_tenant_s_name_is_worth_nothing_to_the_planner(
    kube: KubeClient, attacker: Attacker, victim: str, extender: Replica
) -> None:
    """No Tenant has either namespace, so that no policy of the API server refuses the job."""
    sharing = {"allowed": True}
    await submit(kube, victim, "honest", **manifest("honest", tenant=victim, sharing=sharing)["spec"])
    evil = manifest("evil", tenant=victim, weight=1e6, slo={"deadline": TOMORROW}, sharing=sharing)
    assert (await attacker.submit(evil)).code == 0
    message = await valid(kube, attacker.namespace, "evil", "TenantRefused")
    assert f"spec.tenant is {victim}" in message
    assert "spec.weight is 1e+06 and counts as 1" in message
    await reaches(kube, victim, "honest", "Running", seconds=30)
    await reaches(kube, attacker.namespace, "evil", "Running", seconds=30)
    (theirs,) = planned_of(extender, attacker.namespace)
    assert (theirs.tenant, theirs.weight, theirs.deadline_s) == (attacker.namespace, 1.0, None)
    (own,) = planned_of(extender, victim)
    assert own.tenant == victim


async def test_a_job_that_never_leaves_gets_no_gpu_that_the_administrator_has_not_allowed(
    kube: KubeClient, attacker: Attacker, extender: Replica
) -> None:
    assert (await attacker.submit(manifest("never", preemption="Never"), manifest("later"))).code == 0
    queue = await attacker.told("never", "queue")
    assert queue["reason"] == "NeverPreemptedCap"
    assert "at most 0 GPUs" in queue["message"]
    await reaches(kube, attacker.namespace, "later", "Running", seconds=30)
    changed = await attacker.kubectl("patch", "tj", "later", "--type=merge", "-p", '{"spec": {"preemption": "Never"}}')
    assert changed.code == 0, changed.errors
    assert "preempted like others" in await valid(kube, attacker.namespace, "later", "TenantCapped")
    (planned,) = [one for one in planned_of(extender, attacker.namespace) if one.name.endswith("/later")]
    assert planned.preemptible


async def test_the_cap_of_never_preempted_gpus_is_for_all_jobs_of_the_tenant_together(
    kube: KubeClient, attacker: Attacker, victim: str, tenants: dict[str, str]
) -> None:
    for name in ("first", "second", "third"):
        await submit(kube, victim, name, **manifest(name, preemption="Never")["spec"])
    for name in ("first", "second"):
        await reaches(kube, victim, name, "Running", seconds=30)

    async def waits() -> bool:
        queue = ((await kube.get(TRAINING_JOBS, "third", victim)).get("status") or {}).get("queue") or {}
        return queue.get("reason") == "NeverPreemptedCap"

    await eventually(waits, seconds=30, what="the third job to wait for the cap")

    async def counted() -> bool:
        status = (await kube.get(TENANTS, tenants["victim"]))["status"]
        return (status["jobs"], status["neverPreemptedGPUs"], status["namespaces"]) == (3, 2, 1)

    await eventually(counted, seconds=40, what="the Tenant's counts")
    await kube.delete(TRAINING_JOBS, "first", victim)
    await reaches(kube, victim, "third", "Running", seconds=30)


async def test_tenants_and_everything_that_makes_them_are_the_administrator_s_alone(
    attacker: Attacker, victim: str, tenants: dict[str, str]
) -> None:
    tenant = {"apiVersion": "kube-synergy.dev/v1alpha1", "kind": "Tenant", "metadata": {"name": "mine"}, "spec": {}}
    attempts = [
        await attacker.kubectl("create", "-f", "-", text_in=json.dumps(tenant)),
        await attacker.kubectl("patch", "tenant", tenants["victim"], "--type=merge", "-p", '{"spec": {"weight": 2}}'),
        await attacker.kubectl("delete", "tenant", tenants["victim"]),
        await attacker.kubectl(
            "label", "--overwrite", "namespace", attacker.namespace, f"kubernetes.io/metadata.name={victim}"
        ),
        await attacker.kubectl("label", "--overwrite", "namespace", attacker.namespace, "team=victims"),
        await attacker.kubectl("patch", "schedulingpolicy", "default", "--type=merge", "-p", '{"spec": {}}'),
        await attacker.kubectl("delete", "validatingadmissionpolicy", "kube-synergy-tenancy"),
        await attacker.kubectl("create", "quota", "mine", "--hard=pods=0"),
    ]
    assert [attempt.errors for attempt in attempts if not attempt.forbidden] == []
