"""What a person with `edit` in one namespace tries with kubectl alone, and what it does to another tenant's jobs."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from statistics import median

import httpx
import pytest

from support.extender.made_up_tokens import made_up
from support.extender.servers import trusting
from support.extender.world import Operator, Replica
from support.on_cluster.attacker import ROUND_SECONDS, Attacker, manifest
from support.on_cluster.jobs import reaches, submit
from support.waiting import eventually
from synergy_api import names
from synergy_kube import KubeClient, NotFound, Resource
from synergy_kube.resources import PODS, SERVICES, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
LARGE = 1_400_000
"""Bytes of a pod template: the API server takes the object, and has no room left for its status."""
STORM = 60
"""Jobs that the attacker has at once."""
VICTIMS = 5
REPORT = {"step": 1}
"""The least that a worker's report says: with less, nobody looks at the token."""
EVIL_FIELDS = {
    "an exponent": {"resources": {"min": {"cpu": "1e999999999"}}},
    "more than can be counted": {"resources": {"max": {"memory": "9E"}}},
    "nesting": {"template": {"spec": json.loads('{"a":' * 500 + "1" + "}" * 500)}},
    "no pod": {"template": {"spec": {"containers": [{"name": "", "image": "", "command": [""]}]}}},
    "all the GPUs": {"gpus": 65536},
    "a slow expression": {"throughput": {"regex": "(a+)+$"}},
    "odd affinity": {"template": {"spec": {"containers": [{"name": "t", "image": "i", "command": ["c"]}],
                                           "affinity": {"nodeAffinity": "everywhere"}}}},
}  # fmt: skip


async def start_times(kube: KubeClient, namespace: str, prefix: str, count: int = VICTIMS) -> list[float]:
    """Seconds from the submission of each of some jobs, one after the other, to its running."""
    found = []
    for index in range(count):
        name, begun = f"{prefix}-{index}", time.monotonic()
        await submit(kube, namespace, name, **manifest(name)["spec"])

        async def runs(name: str = name) -> bool:
            return bool(
                ((await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}).get("phase") == "Running"
            )

        await eventually(runs, seconds=60, what=f"{name} to run", every=0.05)
        found.append(time.monotonic() - begun)
    return found


async def starts(kube: KubeClient, namespace: str, name: str = "honest", *, seconds: float = 4 * ROUND_SECONDS) -> None:
    """The victim's job runs within a few rounds."""
    await submit(kube, namespace, name, **manifest(name)["spec"])
    await reaches(kube, namespace, name, "Running", seconds=seconds)


@asynccontextmanager
async def meanwhile(*attacks: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Repeat these as long as the body takes."""

    async def repeated(attack: Callable[[], Awaitable[object]]) -> None:
        while True:
            await attack()

    tasks = [asyncio.create_task(repeated(attack)) for attack in attacks]
    try:
        yield
        assert not [task for task in tasks if task.done()], "the attacks went on"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def within_noise(alone: Sequence[float], attacked: Sequence[float]) -> bool:
    """A round, and the cores that kubectl itself takes from the API server on this machine, are noise."""
    return median(attacked) <= median(alone) + 2 * ROUND_SECONDS


@pytest.mark.long
async def test_others_start_as_they_do_without_the_attacker(
    kube: KubeClient, attacker: Attacker, victim: str, extender: Replica
) -> None:
    alone = await start_times(kube, victim, "alone")
    jobs = [manifest(f"storm-{index:03}", tenant=victim, weight=1e6, gpuTypes=["Tesla-T4"]) for index in range(STORM)]
    assert (await attacker.submit(*jobs)).code == 0
    rounds = 0

    async def updates() -> None:
        nonlocal rounds
        rounds += 1
        await attacker.kubectl("annotate", "tj", "--all", f"n={rounds}", "--overwrite")
        await asyncio.sleep(1)  # kubectl's own work takes as much of this machine as the API server's

    async def deletions() -> None:
        await attacker.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=0")
        await asyncio.sleep(ROUND_SECONDS)

    async with meanwhile(updates, deletions):
        attacked = await start_times(kube, victim, "attacked")
    assert rounds > 0
    print(f"seconds to start, alone: {alone}; with the attacker: {attacked}")
    assert within_noise(alone, attacked), f"without: {alone}; with the attacker: {attacked}"


async def test_a_template_that_leaves_no_room_for_a_status_is_its_own_job_s_trouble(
    kube: KubeClient, attacker: Attacker, victim: str
) -> None:
    evil = manifest("large")
    evil["spec"]["template"]["metadata"] = {"annotations": {"padding": "x" * LARGE}}
    await attacker.submit(evil)
    await starts(kube, victim)
    await starts(kube, victim, "another")


async def test_a_service_of_the_job_s_name_holds_no_gpus(kube: KubeClient, attacker: Attacker, victim: str) -> None:
    name = names.service_name("taken")
    created = await attacker.kubectl("create", "service", "clusterip", name, "--tcp=80")
    assert created.code == 0, created.errors
    await attacker.submit(manifest("taken", gpus=8))
    await starts(kube, victim)
    await given_back(attacker, "taken")
    service = await kube.get(SERVICES, name, attacker.namespace)
    assert service["spec"]["ports"][0]["port"] == 80, "and nobody has taken the Service over"


async def given_back(attacker: Attacker, name: str, *, seconds: float = 60) -> None:
    """The job's run has ended without a pod, and the job says why, or it waits and says why."""

    async def told() -> bool:
        status = (await attacker.job(name)).get("status") or {}
        queue, last = status.get("queue") or {}, (status.get("service") or {}).get("last") or {}
        holds = (status.get("allocation") or {}).get("state") == "Granted"
        return not holds and bool(queue.get("message") or last.get("reason"))

    await eventually(told, seconds=seconds, what=f"{name} to give its GPUs back and say why")


async def test_a_deletion_with_a_grace_period_of_years_is_refused(kube: KubeClient, attacker: Attacker) -> None:
    assert (await attacker.submit(manifest("own"))).code == 0
    await reaches(kube, attacker.namespace, "own", "Running", seconds=20)
    (pod,) = (await kube.list(PODS, attacker.namespace))["items"]
    name, label = pod["metadata"]["name"], f"{names.LABEL_JOB}-"
    years = ("delete", "pod", name, "--wait=false", "--grace-period=100000000")
    for change in ((), ("label", "pod", name, label)):
        if change:
            await attacker.kubectl(*change)
        refused = await attacker.kubectl(*years)
        assert refused.code != 0
        assert "leave --grace-period out" in refused.errors
    (pod,) = (await kube.list(PODS, attacker.namespace))["items"]
    assert "deletionTimestamp" not in pod["metadata"]
    assert (await attacker.kubectl(*years[:-1], "--grace-period=60")).code == 0


async def test_a_full_quota_of_the_own_namespace_takes_nothing_from_others(
    kube: KubeClient, attacker: Attacker, victim: str
) -> None:
    await kube.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}, attacker.namespace)
    await attacker.submit(*(manifest(f"over-{index}", gpus=8) for index in range(10)))
    await starts(kube, victim)
    await given_back(attacker, "over-0")


async def test_pods_with_other_labels_gates_and_places_take_nothing_from_others(
    kube: KubeClient, attacker: Attacker, victim: str, extender: Replica
) -> None:
    await starts(kube, victim)
    before = (await kube.get(TRAINING_JOBS, "honest", victim))["status"]
    (pod,) = (await kube.list(PODS, victim))["items"]
    assert (await attacker.submit(manifest("own"))).code == 0
    await reaches(kube, attacker.namespace, "own", "Running", seconds=20)
    stolen = {key: value for key, value in pod["metadata"]["labels"].items() if key.startswith("kube-synergy.dev/")}
    place = {names.ANNOTATION_PLANNED_NODE: pod["spec"]["nodeName"]}
    fake = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod["metadata"]["name"], "labels": stolen, "annotations": place},
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {names.RESOURCE_GPU: "8"}}}],
        },
    }
    made = await attacker.kubectl("create", "-f", "-", text_in=json.dumps(fake))
    assert made.code == 0, made.errors
    labels = [f"{key}={value}" for key, value in stolen.items()]
    assert (await attacker.kubectl("label", "pods", "--all", "--overwrite", *labels)).code == 0
    annotation = f"{names.ANNOTATION_PLANNED_NODE}={pod['spec']['nodeName']}"
    assert (await attacker.kubectl("annotate", "pods", "--all", "--overwrite", annotation)).code == 0
    gates = json.dumps({"spec": {"schedulingGates": None}})
    await attacker.kubectl("patch", "pod", fake["metadata"]["name"], "--type=merge", "-p", gates)
    await starts(kube, victim, "another")
    forged = await kube.get(PODS, str(pod["metadata"]["name"]), attacker.namespace)
    assert "nodeName" not in forged["spec"], "a pod that no plan knows is bound nowhere"
    after = (await kube.get(TRAINING_JOBS, "honest", victim))["status"]
    assert (after["phase"], after["allocation"]["run"]) == ("Running", before["allocation"]["run"])


async def test_deleting_one_s_own_pods_again_and_again_costs_others_nothing(
    kube: KubeClient, attacker: Attacker, victim: str
) -> None:
    assert (await attacker.submit(*(manifest(f"own-{index}") for index in range(5)))).code == 0
    await starts(kube, victim)

    async def deleted() -> None:
        await attacker.kubectl("delete", "pods", "--all", "--wait=false", "--grace-period=0")

    async with meanwhile(deleted):
        await starts(kube, victim, "another")
        await starts(kube, victim, "third")
    status = (await kube.get(TRAINING_JOBS, "honest", victim))["status"]
    assert (status["phase"], status["allocation"]["run"]) == ("Running", 1)


async def test_a_deleted_job_that_the_attacker_keeps_with_a_finalizer_keeps_no_gpus(
    kube: KubeClient, attacker: Attacker, victim: str
) -> None:
    assert (await attacker.submit(manifest("kept"))).code == 0
    await reaches(kube, attacker.namespace, "kept", "Running", seconds=20)
    finalizers = json.dumps({"metadata": {"finalizers": ["example.com/mine"]}})
    patched = await attacker.kubectl("patch", "tj", "kept", "--type=merge", "-p", finalizers)
    assert patched.code == 0, patched.errors
    assert (await attacker.kubectl("delete", "tj", "kept", "--wait=false")).code == 0

    async def given_back() -> bool:
        state = (await attacker.job("kept"))["status"]["allocation"]["state"]
        return state != "Granted" and not (await kube.list(PODS, attacker.namespace))["items"]

    await eventually(given_back, seconds=4 * ROUND_SECONDS, what="the deleted job to lose its place and its pods")
    await starts(kube, victim)
    nobody = json.dumps({"metadata": {"finalizers": None}})
    assert (await attacker.kubectl("patch", "tj", "kept", "--type=merge", "-p", nobody)).code == 0


async def test_statuses_and_other_namespaces_are_out_of_reach(
    kube: KubeClient, attacker: Attacker, victim: str
) -> None:
    await starts(kube, victim)
    assert (await attacker.submit(manifest("own"))).code == 0
    status = json.dumps({"status": {"allocation": {"run": 1, "state": "Granted"}}})
    attempts = [
        await attacker.kubectl("patch", "tj", "own", "--subresource=status", "--type=merge", "-p", status),
        await attacker.kubectl("get", "tj", "honest", namespace=victim),
        await attacker.kubectl("patch", "tj", "honest", "--type=merge", "-p", "{}", namespace=victim),
        await attacker.kubectl("delete", "tj", "honest", namespace=victim),
        await attacker.kubectl("delete", "pods", "--all", namespace=victim),
        await attacker.kubectl("create", "-f", "-", text_in=json.dumps(manifest("mine")), namespace=victim),
        await attacker.kubectl("get", "secrets", namespace="kube-system"),
    ]
    assert [attempt.errors for attempt in attempts if not attempt.forbidden] == []
    # a status in what is created is dropped by the API server
    evil = {**manifest("dreams"), "status": {"phase": "Running", "service": {"run": 7, "attainedGPUSeconds": 1}}}
    assert (await attacker.submit(evil)).code == 0
    await attacker.told("dreams", "phase")
    service = ((await attacker.job("dreams"))["status"]).get("service") or {}
    assert service.get("run", 0) < 7


async def test_fields_that_nobody_can_compute_are_refused_or_are_that_job_s_own(
    kube: KubeClient, attacker: Attacker, victim: str, extender: Replica
) -> None:
    for index, spec in enumerate(EVIL_FIELDS.values()):
        await attacker.submit(manifest(f"evil-{index}", **spec))
    await starts(kube, victim)
    await starts(kube, victim, "another")
    kept = (await attacker.kubectl("get", "tj", "-o", "json")).document()["items"]
    for item in kept:
        name = item["metadata"]["name"]

        async def told(name: str = name) -> bool:
            status = (await attacker.job(name)).get("status") or {}
            return bool(status.get("problem") or status.get("queue") or status.get("phase") == "Running")

        await eventually(told, seconds=20, what=f"{name} to be told what is wrong")


async def test_a_flood_of_made_up_tokens_keeps_no_worker_from_its_lease(
    kube: KubeClient, victim: str, extender: Replica
) -> None:
    await starts(kube, victim)
    (pod,) = (await kube.list(PODS, victim))["items"]
    token = await Operator(kube, victim).token(pod)
    flood: Counter[int] = Counter()

    async def flooded() -> None:
        transport = httpx.AsyncHTTPTransport(verify=trusting(extender.authority), local_address="127.0.0.66")
        async with httpx.AsyncClient(base_url=str(api.base_url), transport=transport) as strangers:
            for _ in range(20):
                forged = made_up(victim, pod["metadata"]["name"], pod["metadata"]["uid"])
                answer = await strangers.post("/v1/lease", json=REPORT, headers={"Authorization": f"Bearer {forged}"})
                flood[answer.status_code] += 1

    async with extender.api() as api, meanwhile(*[flooded] * 8):
        await eventually(_once(lambda: flood.total() > 50), seconds=20, what="the flood")
        begun = time.monotonic()
        answer = await api.post("/v1/lease", json=REPORT, headers={"Authorization": f"Bearer {token}"}, timeout=30)
        assert time.monotonic() - begun < ROUND_SECONDS
        assert answer.status_code == 200, answer.text
    assert set(flood) <= {401, 503}, "each was looked at, and none let in"


def _once(holds: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return holds()

    return probe


async def test_nothing_of_the_attacker_s_stays_behind(kube: KubeClient, attacker: Attacker) -> None:
    assert (await attacker.submit(manifest("own"))).code == 0
    await reaches(kube, attacker.namespace, "own", "Running", seconds=20)
    assert (await attacker.kubectl("delete", "tj", "own", "--wait=false")).code == 0

    async def gone() -> bool:
        try:
            await kube.get(TRAINING_JOBS, "own", attacker.namespace)
        except NotFound:
            return not (await kube.list(PODS, attacker.namespace))["items"]
        return False

    await eventually(gone, seconds=30, what="the job and its pods to be gone")
