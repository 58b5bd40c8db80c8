"""A retune reaches running pods in place; what is refused is learned, told, and not asked for again every round."""

import pytest

from support.operator.objects import GIB, workers_json
from support.operator.world import World
from synergy_api.amounts import Amounts
from synergy_api.quantity import byte_count, cpu_millis
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.actions import ResizePod
from synergy_operator.run.size_limits import RETRY_SECONDS, ROOM_SECONDS
from synergy_operator.views.refusals import Refusals, RefusedResize

INFEASIBLE = ("PodResizePending", "Infeasible", "static CPU manager")
IN_USE = ("PodResizeInProgress", "Error", "attempting to set pod memory limit below current usage")
BOUNDS = ("min_cpu_millis", "max_cpu_millis", "min_memory_bytes", "max_memory_bytes")


def holds(world: World, pod: str, cpu: int, gib: int) -> None:
    """The kubelet says what the pod's container really has."""
    resources = {"requests": {"cpu": f"{cpu}m", "memory": f"{gib}Gi", "nvidia.com/gpu": "1"}}
    status = world.pods[pod]["status"]["containerStatuses"][0]
    world.set_pod(pod, containerStatuses=[{**status, "resources": resources}])


def answer(world: World, pod: str, kind: str, reason: str, message: str) -> None:
    """The kubelet says, now, how the resize to the pod's present spec stands."""
    seen, now = world.pods[pod]["metadata"]["generation"], format_time(world.now)
    said = {"type": kind, "status": "True", "reason": reason, "message": message, "observedGeneration": seen}
    world.set_pod(pod, conditions=[{**said, "lastTransitionTime": now}])


def running(**spec: object) -> World:
    """A job of one GPU that runs with 3000m and 8 GiB."""
    world = World(**spec)
    world.settle()
    world.grant()
    world.run_all()
    holds(world, "job-1-0", 3000, 8)
    return world


def pair() -> World:
    """A job of two workers with one GPU each, 3000m and 8 GiB."""
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.run_all()
    return world


def plan(world: World, cpu: int, gib: int, gpus: int = 1) -> None:
    """The plan changes the sizes; the operator asks for them."""
    world.allocate(workers=[workers_json("n1", gpus, cpu, gib)])
    world.settle()


def asked(world: World, name: str = "job-1-0") -> tuple[int, int]:
    """milli-CPU and bytes that the pod's spec has."""
    requests = world.pods[name]["spec"]["containers"][0]["resources"]["requests"]
    return cpu_millis(requests["cpu"]), byte_count(requests["memory"])


def bounds(world: World) -> dict[str, int]:
    """What the plan is told to keep within."""
    limits = world.status.size_limits
    return {name: getattr(limits, name) for name in BOUNDS if getattr(limits, name, None) is not None}


def refuse(world: World, pod: str, cpu: int, gib: int, message: str, *, invalid: bool = False) -> None:
    """The API server refuses a size."""
    refused = RefusedResize(Amounts(0, cpu, gib * GIB), message, world.now, invalid)
    world.refusals = Refusals(resizes={**world.refusals.resizes, f"uid-{pod}": refused})


def test_a_retune_resizes_the_running_pods_without_a_restart() -> None:
    world = pair()
    plan(world, 9001, 20, gpus=2)
    sizes = [pod["spec"]["containers"][0]["resources"]["requests"] for _, pod in sorted(world.pods.items())]
    assert [size["cpu"] for size in sizes] == ["4500m", "4501m"]
    assert sum(int(size["memory"]) for size in sizes) == 20 * GIB
    assert world.status.phase == "Running"
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"
    told = [event.message for event in world.events if event.reason == "AsPlanned"]
    assert told == ["the workers have 9001m CPU and 20Gi memory, as planned"]
    assert world.status.size_limits is None


def test_a_resize_is_over_when_the_container_has_what_its_spec_says() -> None:
    world = running()
    holds(world, "job-1-0", 2000, 8)
    world.settle()
    assert world.reason("ResourcesAsPlanned") == "Resizing"
    holds(world, "job-1-0", 3000, 8)
    world.settle()
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"


def test_a_resize_that_the_kubelet_puts_off_is_told_and_stays_asked_for() -> None:
    world = running()
    plan(world, 5000, 8)
    answer(world, "job-1-0", "PodResizePending", "Deferred", "not now")
    world.settle()
    assert world.reason("ResourcesAsPlanned") == "ResizePending"
    assert world.message("ResourcesAsPlanned") == "worker 0 keeps its size for now: Deferred: not now"
    assert asked(world) == (5000, 8 * GIB)
    assert bounds(world) == {}


def test_growth_that_is_infeasible_is_taken_back_told_and_bounds_the_plan() -> None:
    world = running()
    plan(world, 5000, 8)
    answer(world, "job-1-0", *INFEASIBLE)
    world.settle()
    assert asked(world) == (3000, 8 * GIB), "the spec says again what the container has"
    assert bounds(world) == {"max_cpu_millis": 3000}
    assert world.reason("ResourcesAsPlanned") == "ResizeInfeasible"
    assert "cannot be given 5 CPU and 8Gi memory on its node: Infeasible: static" in world.message("ResourcesAsPlanned")
    assert world.posted().count("ResizeInfeasible") == 1
    assert world.status.phase == "Running"


def test_growth_that_was_infeasible_is_asked_for_again_only_after_a_while() -> None:
    world = running()
    plan(world, 5000, 8)
    answer(world, "job-1-0", *INFEASIBLE)
    world.settle()
    world.set_pod("job-1-0", conditions=[])
    plan(world, 4000, 8)
    assert asked(world) == (3000, 8 * GIB)
    limits = world.status.size_limits
    assert limits is not None
    assert limits.until is not None
    assert parse_time(limits.until) == world.now + RETRY_SECONDS
    assert world.step().requeue_after == pytest.approx(RETRY_SECONDS)
    plan(world, 2000, 8)
    assert asked(world) == (2000, 8 * GIB), "shrinking was not refused"
    assert bounds(world) == {"max_cpu_millis": 3000}
    holds(world, "job-1-0", 2000, 8)
    world.wait(RETRY_SECONDS + 1)
    world.settle()
    assert bounds(world) == {}
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"
    plan(world, 5000, 8)
    assert asked(world) == (5000, 8 * GIB)


def test_an_answer_to_an_older_spec_teaches_nothing() -> None:
    world = running()
    plan(world, 5000, 8)
    answer(world, "job-1-0", *INFEASIBLE)
    world.allocate(workers=[workers_json("n1", 1, 2000, 8)])
    world.step()  # the operator learns of both at once
    world.settle()
    assert asked(world) == (2000, 8 * GIB)
    assert bounds(world) == {"max_cpu_millis": 3000}


def test_memory_is_given_back_after_the_cpu_has_changed() -> None:
    """The kubelet carries out nothing of a resize whose memory it refuses."""
    world = running()
    plan(world, 2000, 4)
    assert asked(world) == (2000, 8 * GIB)
    assert world.reason("ResourcesAsPlanned") == "Resizing"
    holds(world, "job-1-0", 2000, 8)
    world.settle()
    assert asked(world) == (2000, 4 * GIB)
    answer(world, "job-1-0", *IN_USE)
    plan(world, 1000, 4)
    assert asked(world) == (1000, 8 * GIB), "the memory, which may still be in use, does not keep the CPU"


def test_where_nothing_can_be_changed_the_container_keeps_what_it_has() -> None:
    world = running()
    plan(world, 5000, 6)
    answer(world, "job-1-0", *INFEASIBLE)
    world.settle()
    assert asked(world) == (3000, 6 * GIB), "growing is given up first"
    assert bounds(world) == {"max_cpu_millis": 3000}
    answer(world, "job-1-0", *INFEASIBLE)
    world.settle()
    assert asked(world) == (3000, 8 * GIB)
    assert bounds(world) == {"max_cpu_millis": 3000, "min_memory_bytes": 8 * GIB}


def test_memory_that_stays_in_use_stays_and_bounds_the_plan() -> None:
    world = running()
    plan(world, 3000, 4)
    answer(world, "job-1-0", *IN_USE)
    world.settle()
    assert asked(world) == (3000, 4 * GIB), "a job may make room as soon as it hears of the plan"
    assert bounds(world) == {}
    assert world.reason("ResourcesAsPlanned") == "Resizing"
    assert world.step().requeue_after == pytest.approx(ROOM_SECONDS)
    world.wait(ROOM_SECONDS)
    world.settle()
    assert asked(world) == (3000, 8 * GIB)
    assert bounds(world) == {"min_memory_bytes": 8 * GIB}
    assert world.reason("ResourcesAsPlanned") == "MemoryInUse"
    assert "uses more memory than the 4Gi that the plan leaves it" in world.message("ResourcesAsPlanned")
    assert world.posted().count("MemoryInUse") == 1


def test_an_error_that_is_not_about_memory_is_left_to_the_kubelet() -> None:
    world = running()
    plan(world, 2000, 8)
    answer(world, "job-1-0", "PodResizeInProgress", "Error", "the runtime is away")
    world.wait(ROOM_SECONDS)
    world.settle()
    assert bounds(world) == {}
    assert world.reason("ResourcesAsPlanned") == "Resizing"


def test_a_refused_resize_is_told_and_not_asked_for_again() -> None:
    world = running()
    world.allocate(workers=[workers_json("n1", 1, 5000, 8)])
    refuse(world, "job-1-0", 5000, 8, "exceeded quota: team")
    world.settle()
    assert world.reason("ResourcesAsPlanned") == "ResizeRefused"
    assert "exceeded quota" in world.message("ResourcesAsPlanned")
    assert asked(world) == (3000, 8 * GIB)
    assert bounds(world) == {"max_cpu_millis": 3000}
    plan(world, 2000, 8)
    assert asked(world) == (2000, 8 * GIB)
    holds(world, "job-1-0", 2000, 8)
    world.settle()
    assert bounds(world) == {"max_cpu_millis": 3000}, "an old refusal says no more for being looked at again"
    world.wait(RETRY_SECONDS + 1)
    plan(world, 5000, 8)
    assert asked(world) == (5000, 8 * GIB)


def test_a_kubernetes_that_cannot_shrink_memory_in_place_changes_the_cpu_alone() -> None:
    """1.33 finds such a change invalid, whatever else is in it."""
    world = running()
    plan(world, 5000, 4)
    holds(world, "job-1-0", 5000, 8)
    refuse(world, "job-1-0", 5000, 4, "memory limits cannot be decreased", invalid=True)
    world.settle()
    assert asked(world) == (5000, 8 * GIB)
    assert bounds(world) == {"min_memory_bytes": 8 * GIB}


def test_what_one_worker_cannot_have_none_of_its_gang_keeps() -> None:
    world = pair()
    for name in ("job-1-0", "job-1-1"):
        holds(world, name, 3000, 8)
    plan(world, 10_000, 16, gpus=2)
    holds(world, "job-1-0", 5000, 8)
    answer(world, "job-1-1", *INFEASIBLE)
    world.settle()
    assert [asked(world, name) for name in ("job-1-0", "job-1-1")] == [(3000, 8 * GIB)] * 2
    assert bounds(world) == {"max_cpu_millis": 6000}
    assert "worker 1" in world.message("ResourcesAsPlanned")


def test_what_one_worker_does_not_give_back_another_takes_again_only_from_the_plan() -> None:
    """What it gave back may be somebody else's by now."""
    world = pair()
    for name in ("job-1-0", "job-1-1"):
        holds(world, name, 3000, 8)
    plan(world, 6000, 8, gpus=2)
    holds(world, "job-1-0", 3000, 4)
    answer(world, "job-1-1", *IN_USE)
    world.wait(ROOM_SECONDS)
    world.settle()
    assert bounds(world) == {"min_memory_bytes": 16 * GIB}
    assert [asked(world, name)[1] // GIB for name in ("job-1-0", "job-1-1")] == [4, 8]
    plan(world, 6000, 16, gpus=2)
    assert [asked(world, name)[1] // GIB for name in ("job-1-0", "job-1-1")] == [8, 8]


def test_the_bounds_of_a_run_end_with_it() -> None:
    world = running()
    plan(world, 5000, 8)
    answer(world, "job-1-0", *INFEASIBLE)
    world.settle()
    world.revoke()
    world.exit("job-1-0", 75)
    world.settle()
    assert world.status.phase == "Queued"
    assert world.status.size_limits is None


def test_without_in_place_resize_a_run_keeps_its_size_and_the_plan_is_told() -> None:
    world = World()
    world.resizable = False
    world.settle()
    world.grant()
    world.run_all()
    assert bounds(world) == dict(zip(BOUNDS, (3000, 3000, 8 * GIB, 8 * GIB), strict=True))
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"
    world.allocate(workers=[workers_json("n1", 1, 5000, 8)])
    assert not any(isinstance(action, ResizePod) for action in world.settle().todo)
    assert asked(world) == (3000, 8 * GIB)
    assert world.reason("ResourcesAsPlanned") == "ResizeUnavailable"
    world.revoke()
    world.exit("job-1-0", 75)
    world.settle()
    world.grant(("n1", 1, 5000, 8))
    world.settle()
    assert asked(world, "job-2-0") == (5000, 8 * GIB), "the next run starts with the planned size"


def test_without_in_place_resize_gated_workers_are_let_go_as_they_are() -> None:
    world = World()
    world.resizable = False
    world.settle()
    world.grant(admitted=False)
    world.settle()
    world.allocate(workers=[workers_json("n1", 1, 2000, 8)], admitted=True)
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == []
    assert asked(world) == (3000, 8 * GIB)
