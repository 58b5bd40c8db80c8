"""The ResourceClaim of a worker whose GPUs are devices of DRA: what it selects, when it is made, and whose it is."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from support.operator.owners import no_owners, no_warnings
from support.operator.profile_world import asking, give_place
from support.operator.world import World
from synergy_api.devices import class_resource
from synergy_api.names import ANNOTATION_DEVICES, ANNOTATION_RESOURCE, LABEL_JOB
from synergy_kube import Conflict
from synergy_kube.resources import JOBS, RESOURCE_CLAIMS, Resource
from synergy_operator.actions import CreateJob, EnsureClaim, UngatePod
from synergy_operator.edge.caches.jobs import JobCache
from synergy_operator.edge.caches.objects import OwnedCache
from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.event_queue import EventQueue
from synergy_operator.edge.executor import Executor
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.job.reconcile import reconcile
from synergy_operator.pods.claim import selector
from synergy_operator.views.pod import read_pod

CLASS = class_resource("gpu.example.com")


def on_dra(*, admitted: bool = True, **spec: Any) -> World:
    """A job with a place of two GPUs of DRA."""
    world = World(gpus=2, **spec)
    world.settle()
    world.grant(("n1", 2, 3000, 16), admitted=admitted)
    (share,) = world.job["status"]["allocation"]["workers"]
    dra = {"resource": CLASS, "deviceIds": ["GPU-a", "GPU-b"] if admitted else [], "devices": 4}
    world.allocate(workers=[{**share, **dra, "capacity": {"memory": "7"}}])
    return world


def claims(world: World) -> list[EnsureClaim]:
    """What the next steps make, without their effect on claims."""
    found: list[EnsureClaim] = []
    for _ in range(4):
        todo = world.step().todo
        kinds = [type(action) for action in todo]
        if EnsureClaim in kinds:
            assert kinds.index(EnsureClaim) < kinds.index(UngatePod), "a pod without its claim could not be bound"
        found += [action for action in todo if isinstance(action, EnsureClaim)]
    return found


def test_a_worker_has_a_claim_in_place_of_a_resource() -> None:
    world = on_dra()
    world.step()
    (pod,) = world.pods.values()
    resources = pod["spec"]["containers"][0]["resources"]
    assert not [name for name in resources["limits"] if "/" in name]
    (entry,) = pod["spec"]["resourceClaims"]
    assert entry["resourceClaimName"] == pod["metadata"]["name"]
    assert resources["claims"] == [{"name": entry["name"]}]
    annotations = pod["metadata"]["annotations"]
    assert (annotations[ANNOTATION_RESOURCE], annotations[ANNOTATION_DEVICES]) == (CLASS, "4")
    pod["metadata"] |= {"resourceVersion": "1"}
    assert read_pod(pod).gpus == 4


def test_the_claim_selects_the_planned_devices_and_comes_before_the_gate_falls() -> None:
    world = on_dra()
    (made,) = claims(world)
    (request,) = made.manifest["spec"]["devices"]["requests"]
    exactly = request["exactly"]
    assert (exactly["deviceClassName"], exactly["count"]) == ("gpu.example.com", 2)
    assert exactly["capacity"] == {"requests": {"memory": "7"}}
    assert exactly["selectors"] == [{"cel": {"expression": selector(("GPU-a", "GPU-b"))}}]
    assert '["GPU-a", "GPU-b"]' in selector(("GPU-a", "GPU-b"))


def test_each_worker_of_a_node_has_its_own_devices() -> None:
    world = on_dra(gpusPerWorker=1)
    first, second = claims(world)
    expressions = [
        made.manifest["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"]
        for made in (first, second)
    ]
    assert expressions == [selector(("GPU-a",)), selector(("GPU-b",))]


def test_no_claim_is_made_before_the_run_is_admitted() -> None:
    assert claims(on_dra(admitted=False)) == []


def test_without_uuids_any_device_of_the_node_will_do() -> None:
    world = on_dra()
    (share,) = world.job["status"]["allocation"]["workers"]
    world.allocate(workers=[{**share, "deviceIds": [], "capacity": {}}])
    (made,) = claims(world)
    assert made.manifest["spec"]["devices"]["requests"][0]["exactly"].keys() == {
        "deviceClassName",
        "allocationMode",
        "count",
    }


def test_a_profile_run_has_a_claim_too() -> None:
    world = asking()
    give_place(world)
    (share,) = world.job["status"]["allocation"]["workers"]
    world.allocate(workers=[{**share, "resource": CLASS, "deviceIds": ["GPU-a"]}])
    made = next(a for a in reconcile(world.observe(), world.now).todo if isinstance(a, CreateJob))
    assert made.claim is not None
    template = made.manifest["spec"]["template"]["spec"]
    assert template["resourceClaims"][0]["resourceClaimName"] == made.claim["metadata"]["name"]


class Server:
    """Keeps what is created; a claim's name may be taken."""

    def __init__(self, taken: Mapping[str, Any] | None = None, spec: Mapping[str, Any] | None = None) -> None:
        self.taken, self.spec = taken, spec or {}
        self.made: list[tuple[Resource, Mapping[str, Any]]] = []

    async def create(self, resource: Resource, body: Mapping[str, Any], _: str) -> dict[str, Any]:
        if resource is RESOURCE_CLAIMS and self.taken is not None:
            raise Conflict(409, "AlreadyExists", f'resourceclaims "{body["metadata"]["name"]}" already exists')
        self.made.append((resource, body))
        metadata = {"uid": "uid-of-it", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return {**body, "metadata": {**body["metadata"], **metadata}}

    async def get(self, _resource: Resource, name: str, _: str) -> dict[str, Any]:
        return {"metadata": {"name": name, **(self.taken or {})}, "spec": self.spec}


def executor(server: Server, refusals: RefusalLog) -> Executor:
    parts = SimpleNamespace(refusals=refusals, warnings=no_warnings(server), events=EventQueue(asyncio.Event()))
    kept = SimpleNamespace(jobs=JobCache(), pods=OwnedCache[Any](), batch_jobs=OwnedCache[Any]())
    return Executor(
        server, clock=lambda: 0.0, owners=no_owners(server), wake=lambda _: None, **vars(kept), **vars(parts)
    )  # type: ignore[arg-type]


async def test_a_claim_goes_with_its_pod() -> None:
    world, server = on_dra(), Server()
    (made,) = claims(world)
    await executor(server, RefusalLog()).carry_out(world.view, [made])
    ((_, claim),) = server.made
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("Pod", made.pod, made.uid, True)


async def test_the_claim_of_a_profile_run_goes_with_its_job() -> None:
    world, server = asking(), Server()
    give_place(world)
    (share,) = world.job["status"]["allocation"]["workers"]
    world.allocate(workers=[{**share, "resource": CLASS, "deviceIds": ["GPU-a"]}])
    made = next(a for a in reconcile(world.observe(), world.now).todo if isinstance(a, CreateJob))
    await executor(server, RefusalLog()).carry_out(world.view, [made])
    (first, _), (second, claim) = server.made
    assert (first, second) == (JOBS, RESOURCE_CLAIMS)
    assert claim["metadata"]["ownerReferences"][0]["uid"] == "uid-of-it"


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ({"labels": {}}, "already exists"),
        ({"labels": {LABEL_JOB: "job"}, "ownerReferences": [{"uid": "other"}]}, "of an earlier pod is still there"),
    ],
)
async def test_a_claim_of_the_name_that_is_another_s_is_not_used(taken: Mapping[str, Any], said: str) -> None:
    world, refusals = on_dra(), RefusalLog()
    (made,) = claims(world)
    with pytest.raises(TryAgain, match=said):
        await executor(Server(taken), refusals).carry_out(world.view, [made])
    assert (refusals.of(world.view.key).run == 1) == (not taken["labels"])


async def test_a_claim_that_was_made_already_stays() -> None:
    world = on_dra()
    (made,) = claims(world)
    server = Server({"labels": {}, "ownerReferences": [{"uid": made.uid}]}, made.manifest["spec"])
    await executor(server, RefusalLog()).carry_out(world.view, [made])
    assert server.made == []


@pytest.mark.parametrize("more", [{"count": 8}, {"allocationMode": "All"}, {"selectors": []}, {"adminAccess": True}])
async def test_a_claim_that_a_user_made_for_the_pod_with_more_devices_is_not_used(more: Mapping[str, Any]) -> None:
    """Whoever may create claims can give one the name and the owner of a worker that still has its gate."""
    world, refusals = on_dra(), RefusalLog()
    (made,) = claims(world)
    (request,) = made.manifest["spec"]["devices"]["requests"]
    spec = {"devices": {"requests": [{**request, "exactly": {**request["exactly"], **more}}]}}
    with pytest.raises(TryAgain, match="asks for other devices"):
        await executor(Server({"ownerReferences": [{"uid": made.uid}]}, spec), refusals).carry_out(world.view, [made])
    assert refusals.of(world.view.key).run == 1
