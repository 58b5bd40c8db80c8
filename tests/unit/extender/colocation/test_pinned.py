"""Which devices of DRA a run gets, and what claims of others take away."""

from dataclasses import replace
from typing import Any

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share, worker
from synergy_api.cluster.pool import Pool, with_devices
from synergy_api.cluster.pools import node_capacities
from synergy_api.cluster.slices import DeviceKey, read_slice
from synergy_api.devices import class_resource
from synergy_api.names import (
    ANNOTATION_DEVICES,
    ANNOTATION_RESOURCE,
    LABEL_JOB,
    LABEL_RANK,
    LABEL_ROLE,
    LABEL_RUN,
    ROLE_WORKER,
)
from synergy_api.parts.allocation import Allocation
from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_extender.cluster.ledger import held_by_others
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, read_pod
from synergy_extender.colocation.pinned import PinnedDevices
from synergy_extender.snapshot.snapshot import build_snapshot

DRIVER = "gpu.example.com"
CLASS = class_resource(DRIVER)


def state(
    *jobs: JobView, claimed: tuple[int, ...] = (), shared: bool = True, gpus: int = 3, memory: str = "40Gi"
) -> ClusterState:
    """One node of DRA."""
    devices: list[dict[str, Any]] = [
        {"name": f"gpu-{i}", "attributes": {"uuid": {"string": f"GPU-{i}"}}, "capacity": {"memory": {"value": memory}}}
        for i in range(gpus)
    ]
    for one in devices if shared else ():
        one["allowMultipleAllocations"] = True
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": {"name": "n1", "generation": 1}, "devices": devices}
    node = node_object("n1")
    nodes = with_devices([node], [read_slice({"metadata": {"name": "s"}, "spec": spec})])
    label = dict(list(node["metadata"]["labels"].items())[:1])
    chosen = {"backend": "DRA", "deviceClass": DRIVER}
    sharing = {"mode": "MPS", "replicas": 2}
    of_pool = {"gpuType": "T", "nodeSelector": label, "devices": chosen, "sharing": sharing}
    capacities = node_capacities(nodes, [Pool("p", GPUPoolSpec.model_validate(of_pool))])
    made = cluster([node], jobs)
    held = frozenset(DeviceKey(DRIVER, "n1", f"gpu-{i}") for i in claimed)
    made.pods.count({one.name: one.gpu_resources for one in capacities})
    made.pods.claim(held_by_others(capacities, held, jobs))
    return replace(made, capacities=capacities, claimed=held)


def place(
    *, gpus: int = 1, devices: int = 2, ids: tuple[int, ...] = (), partners: tuple[str, ...] = ()
) -> dict[str, Any]:
    own = {**share("n1", gpus), "resource": CLASS, "devices": devices, "deviceIds": [f"GPU-{i}" for i in ids]}
    return allocation(own, sharedGpu={"asked": list(partners)})


def read(given: dict[str, Any]) -> Allocation:
    return Allocation.model_validate(given)


def ids_of(found: Allocation | None) -> list[str] | None:
    return None if found is None else found.workers[0].device_ids


def test_a_run_gets_the_first_devices_that_nobody_has() -> None:
    granted = {Key("team", "r"): read(place(ids=(0,)))}
    pins = PinnedDevices(state(claimed=(1,)), granted)
    assert ids_of(pins.pin(Key("team", "w"), read(place()))) == ["GPU-2"]
    assert pins.pin(Key("team", "w"), read(place(gpus=2, devices=4))) is None, "one is free"


def test_what_one_run_takes_no_other_gets() -> None:
    pins = PinnedDevices(state(), {})
    for name, expected in (("a", ["GPU-0"]), ("b", ["GPU-1"]), ("c", ["GPU-2"])):
        found = pins.pin(Key("team", name), read(place()))
        assert ids_of(found) == expected
        assert found is not None
        pins.take(Key("team", name), found)
    assert pins.pin(Key("team", "d"), read(place())) is None


def test_partners_get_one_device_and_share_its_memory() -> None:
    pins = PinnedDevices(state(), {Key("team", "x"): read(place(ids=(0,)))})
    first = pins.pin(Key("team", "a"), read(place(devices=1, partners=("team/b",))))
    assert first is not None
    pins.take(Key("team", "a"), first)
    second = pins.pin(Key("team", "b"), read(place(devices=1, partners=("team/a",))))
    assert second is not None
    assert first.workers[0].device_ids == second.workers[0].device_ids == ["GPU-1"]
    assert first.workers[0].capacity == {"memory": str(20 << 30)}


def test_a_job_alone_asks_for_all_of_its_device_and_nothing_of_one_that_is_not_shared() -> None:
    found = PinnedDevices(state(), {}).pin(Key("team", "a"), read(place()))
    assert found is not None
    assert found.workers[0].capacity == {"memory": str(40 << 30)}
    found = PinnedDevices(state(shared=False), {}).pin(Key("team", "a"), read(place()))
    assert found is not None
    assert (found.workers[0].capacity, found.workers[0].device_ids) == ({}, ["GPU-0"])


def test_a_capacity_that_is_no_whole_number_is_not_asked_for() -> None:
    found = PinnedDevices(state(memory="what"), {}).pin(Key("team", "a"), read(place()))
    assert found is not None
    assert found.workers[0].capacity == {}


def test_a_place_on_other_nodes_stays_as_it_is() -> None:
    other = read(allocation(share("n9")))
    assert PinnedDevices(state(), {}).pin(Key("team", "a"), other) is other


def test_claims_of_others_count_and_those_of_our_runs_do_not() -> None:
    running = job("r", status={"phase": "Running", "allocation": place(ids=(0,))})
    found = state(running, claimed=(0, 1))
    assert found.pods.held("n1").gpus == 2, "one device of two clients"
    (node,) = build_snapshot(found, mode="round", now=NOW, round_s=20).snapshot.nodes
    assert (node.gpus, node.gpus_used, node.counted_as) == (3, 1, CLASS)
    assert held_by_others(found.capacities, frozenset(), [running]) == {}


def test_a_worker_counts_with_what_its_annotations_say_and_another_pod_does_not() -> None:
    annotations = {ANNOTATION_RESOURCE: CLASS, ANNOTATION_DEVICES: "2"}
    item = {
        "metadata": {"name": "r-1-0", "namespace": "team", "uid": "u", "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [{}]},
    }
    found = state()
    found.pods.put(read_pod(item))
    assert found.pods.held("n1").gpus == 0
    own = worker("r", node="n1", gpus=0)
    item["metadata"]["labels"] = {LABEL_JOB: "r", LABEL_RUN: "1", LABEL_RANK: "0", LABEL_ROLE: ROLE_WORKER}
    found.pods.put(read_pod(item))
    assert found.pods.held("n1").gpus == 2
    assert own.member == read_pod(item).member
    annotations[ANNOTATION_DEVICES] = "many"
    found.pods.put(read_pod(item))
    assert found.pods.held("n1").gpus == 0
