"""Jobs on one GPU: whose failure it was when one of them brings down the others."""

import pytest

from support.operator.world import World
from synergy_api.names import ANNOTATION_DEVICES
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_operator.run.partner_failure import PARTNER_WAIT_SECONDS, partners_of
from synergy_operator.views.pod import read_pod

GPU = {"asked": ["default/other"], "wrongRuns": 0}
WORKER = {"node": "n1", "gpus": 1, "cpuMillis": 3000, "memoryBytes": 8 << 30, "devices": 1}


def beside_another() -> tuple[World, World]:
    """Two jobs that run on one GPU."""
    worlds = World(), World(name="other")
    for world in worlds:
        world.settle()
        grant(world)
    return worlds


def grant(world: World) -> None:
    world.grant()
    world.allocate(sharedGpu=GPU, workers=[WORKER])
    world.run_all()


def look(world: World, other: World) -> ServiceStatus:
    """What becomes of the first, which sees the second's pods."""
    world.partners = tuple(read_pod(pod) for pod in other.pods.values())
    world.settle()
    service = world.status.service
    assert service is not None
    return service


def last(service: ServiceStatus) -> RunOutcome:
    assert service.last is not None
    return service.last


def test_a_worker_asks_for_the_devices_that_its_share_says() -> None:
    for more, resource in (({}, "nvidia.com/gpu"), ({"resource": "nvidia.com/gpu.shared"}, "nvidia.com/gpu.shared")):
        world = World()
        world.settle()
        world.grant()
        world.allocate(workers=[{**WORKER, "devices": 3, **more}])
        world.settle()
        (pod,) = world.pods.values()
        assert pod["metadata"]["annotations"][ANNOTATION_DEVICES] == "3"
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert {name: amount for name, amount in limits.items() if "gpu" in name} == {resource: "3"}


@pytest.mark.parametrize(("later", "failures"), [(2, 0), (0, 0), (-2, 1), (20, 1)])
def test_the_first_to_fail_is_charged(later: float, failures: int) -> None:
    """`later` is how many seconds after its partner the job failed."""
    world, other = beside_another()
    other.now += max(0.0, -later)
    world.now += max(0.0, later)
    other.exit("other-1-0", 1)
    world.exit("job-1-0", 1)
    world.wait(PARTNER_WAIT_SECONDS)
    service = look(world, other)
    assert service.failures == failures
    assert len(service.node_failures) == failures, "a partner is no fault of the node"
    assert last(service).outcome == ("Failed" if failures else "Evicted")
    if not failures:
        assert "PartnerFailed" in last(service).reason
        assert "a worker of other did" in last(service).reason
        assert world.pod_names() == ["job-1-0"], "the pod stays, so that its partner is not charged either"


def test_a_failure_is_not_judged_before_its_partners_can_be_known() -> None:
    world, other = beside_another()
    world.exit("job-1-0", 1)
    assert look(world, other).ended_run == 0
    world.wait(PARTNER_WAIT_SECONDS)
    service = look(world, other)
    assert (service.ended_run, service.failures) == (1, 1)


def test_a_partner_s_nested_message_holds_nobody_up() -> None:
    world, other = beside_another()
    other.exit("other-1-0", 1, "[" * 3000)
    world.exit("job-1-0", 1)
    world.wait(PARTNER_WAIT_SECONDS)
    service = look(world, other)
    assert service.ended_run == 1
    assert "a worker of other did" in last(service).reason


def test_of_two_that_fail_at_once_again_and_again_both_are_charged_in_the_end() -> None:
    world, other = beside_another()
    for failures in (0, 1):
        name = world.pod_names()[-1]
        other.now = world.now
        other.exit("other-1-0", 1)
        world.exit(name, 1)
        world.wait(PARTNER_WAIT_SECONDS)
        assert look(world, other).failures == failures
        world.wait(20)
        world.settle()
        if not failures:
            grant(world)


def test_partners_are_those_seen_and_before_that_those_asked_for() -> None:
    given = {"run": 1, "state": "Granted", "sharedGpu": {"asked": ["a/x"], "wrongRuns": 0}}
    assert partners_of(Allocation.model_validate(given)) == {("a", "x")}
    given["sharedGpu"] = {"asked": ["a/x"], "seen": ["b/y"], "wrongRuns": 0}
    assert partners_of(Allocation.model_validate(given)) == {("b", "y")}
    assert partners_of(None) == frozenset()
