"""On which node a run failed is recorded, where the node may be why."""

import pytest

from support.operator.world import World
from synergy_api.timestamps import parse_time


def on_two_nodes() -> World:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    return world


def failures_on(world: World) -> list[tuple[str, int]]:
    service = world.status.service
    assert service is not None
    return [(one.node, one.run) for one in service.node_failures]


def test_the_node_of_the_worker_that_failed_first_is_recorded() -> None:
    world = on_two_nodes()
    world.exit("job-1-1", 1)
    world.wait(2)
    world.exit("job-1-0", 1)
    world.settle()
    assert failures_on(world) == [("n2", 1)]
    service = world.status.service
    assert service is not None
    assert parse_time(service.node_failures[0].at) == world.now


def test_workers_that_fail_together_name_each_of_their_nodes() -> None:
    world = on_two_nodes()
    world.exit("job-1-0", 1)
    world.exit("job-1-1", 1)
    world.settle()
    assert failures_on(world) == [("n1", 1), ("n2", 1)]


@pytest.mark.parametrize(("code", "reason"), [(137, "OOMKilled"), (75, ""), (0, "")])
def test_no_node_is_named_for_a_jobs_own_limit_or_a_good_end(code: int, reason: str) -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", code, reason=reason)
    world.settle()
    assert failures_on(world) == []


@pytest.mark.parametrize(("reason", "named"), [("UnexpectedAdmissionError", [("n1", 1)]), ("OutOfcpu", [])])
def test_a_node_that_refuses_a_pod_is_named_if_its_devices_are_why(reason: str, named: list[tuple[str, int]]) -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.pods["job-1-0"]["status"] |= {"phase": "Failed", "reason": reason, "message": "no healthy devices"}
    world.settle()
    assert failures_on(world) == named


def test_a_job_keeps_its_newest_failures() -> None:
    world = World(backoffLimit=100)
    for run in range(1, 20):
        world.settle()
        world.grant()
        world.run_all()
        world.exit(f"job-{run}-0", 2)
        world.settle()
        world.wait(400)
    assert [run for _, run in failures_on(world)] == list(range(4, 20))
