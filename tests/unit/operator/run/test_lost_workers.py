"""Workers that are taken away or lost with their node are no failure of the job."""

import json
from collections.abc import Callable

import pytest

from support.operator.objects import node
from support.operator.world import World, two_workers
from synergy_api.timestamps import parse_time


def node_pressure(world: World) -> None:
    """The kubelet evicts a worker, and kills it when its grace period is over."""
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    world.set_pod("job-1-1", conditions=[taken], reason="Evicted", message="The node was low on resource: memory.")
    world.exit("job-1-1", 137)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (node_pressure, "WorkerLost"),
        (lambda w: w.delete("job-1-1"), "WorkerLost"),
        (lambda w: w.pods.pop("job-1-1"), "WorkerLost"),
        (lambda w: w.refuse("job-1-1", "OutOfnvidia.com/gpu", "no GPU left"), "WorkerRefused"),
        (
            lambda w: w.set_pod(
                "job-1-1",
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}],
            ),
            "WorkerLost",
        ),
        (lambda w: w.exit("job-1-1", 137, reason="ContainerStatusUnknown"), "WorkerLost"),
    ],
)
def test_a_lost_worker_takes_the_gang_back_and_is_no_failure(harm: Callable[[World], object], reason: str) -> None:
    world = two_workers()
    world.run_all()
    harm(world)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 75, json.dumps({"step": 7}))
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures, service.preemptions) == ("Evicted", 0, 0)
    assert world.status.phase == "Queued"
    assert world.reason("Running") == reason


@pytest.mark.parametrize(
    ("message", "phase"), [("", "Queued"), ("stopped", "Queued"), ('{"outcome": "finished", "step": 100}', "Succeeded")]
)
def test_a_pod_that_was_taken_away_is_done_only_if_it_says_so(message: str, phase: str) -> None:
    """The operator was away meanwhile, and the script ends with 0 on SIGTERM."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.delete("job-1-0")
    world.exit("job-1-0", 0, message)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == phase


def test_a_pod_that_its_node_refused_is_queued_again() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.refuse("job-1-0", "OutOfnvidia.com/gpu", "Pod was rejected: no GPU left")
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.last.outcome == "Evicted"
    assert service.retry_at is not None
    assert parse_time(service.retry_at) == world.now + 10
    assert "no GPU left" in world.message("Running")


def test_peers_that_fail_because_a_node_is_lost_are_no_failure() -> None:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    world.nodes["n2"] = node("n2", ready=False)
    world.exit("job-1-0", 1)
    world.settle()
    assert world.reason("Running") == "NodeNotFenced"
    assert "node n2 does not report" in world.message("Running")
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert world.status.service.last.reason.startswith("WorkerLost")
