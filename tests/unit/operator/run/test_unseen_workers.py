"""A worker that may train unseen on a node that is cut off keeps the next run waiting until it is fenced."""

import json

import pytest

from support.operator.objects import node
from support.operator.world import World
from synergy_api.timestamps import parse_time
from synergy_operator.run.fencing import MARGIN_SECONDS
from synergy_operator.run.take_down import WORD_SECONDS
from synergy_operator.views.pod import read_pod


def _cut_off() -> World:
    """A job whose node does not report any more, and whose pod somebody (the node lifecycle controller) deletes."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.nodes["n1"] = node("n1", ready=False)
    world.settle()
    assert world.status.phase == "Running", "an unready node alone ends nothing"
    world.delete("job-1-0")
    return world


def assert_waits_for_the_fence(world: World) -> None:
    """The run is over, and the next one starts when its worker is fenced for certain."""
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    retry_at = world.status.service.retry_at
    assert retry_at is not None
    assert parse_time(retry_at) == pytest.approx(world.now + 600 + MARGIN_SECONDS, abs=1.0)


def test_a_worker_that_nobody_sees_is_given_up_only_once_it_is_fenced() -> None:
    world = _cut_off()
    # 30 s of grace, the library's fence, and a margin
    assert world.settle().requeue_after == pytest.approx(30 + 600 + MARGIN_SECONDS)
    assert world.reason("Running") == "NodeNotFenced"
    assert "out-of-service" in world.message("Running")
    world.wait(629 + MARGIN_SECONDS)
    world.settle()
    assert "job-1-0" in world.pods
    assert world.status.service is not None
    assert world.status.service.ended_run == 0
    world.wait(1)
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"
    assert world.status.service.failures == 0


@pytest.mark.parametrize("how", ["gone", "out of service"])
def test_a_node_that_is_dead_for_certain_fences_at_once(how: str) -> None:
    world = _cut_off()
    world.settle()
    world.wait(60)
    if how == "gone":
        del world.nodes["n1"]
    else:
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        world.nodes["n1"]["spec"]["taints"] = [taint]
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"


def test_a_node_that_reports_again_ends_its_pod_itself() -> None:
    world = _cut_off()
    world.settle()
    world.nodes["n1"] = node("n1")
    world.settle()
    assert world.reason("Running") == "WorkerLost"
    world.exit("job-1-0", 0)
    world.settle()
    assert world.status.phase == "Queued"


def _vanished() -> World:
    """The pod of a job whose node does not report is gone a second after its grace period. Nobody told its end."""
    world = _cut_off()
    world.settle()
    world.wait(31)
    pod = read_pod(world.pods.pop("job-1-0"))
    world.pod_events.pod_deleted(world.view.key, pod)
    return world


def test_a_node_that_is_back_is_believed_though_its_pod_was_seen_to_vanish_first() -> None:
    world = _vanished()
    again = world.settle().requeue_after
    assert again is not None
    assert 0 < again <= WORD_SECONDS
    assert world.status.service is not None
    assert world.status.service.ended_run == 0
    world.nodes["n1"] = node("n1")
    world.settle()
    assert world.status.service.ended_run == 1
    assert world.status.phase == "Queued"
    retry_at = world.status.service.retry_at
    assert retry_at is None or parse_time(retry_at) <= world.now + 10.5


def test_a_pod_that_vanished_from_a_node_that_stays_away_keeps_the_next_run_waiting() -> None:
    world = _vanished()
    world.settle()
    world.wait(WORD_SECONDS)
    world.settle()
    assert_waits_for_the_fence(world)


def test_a_pod_that_somebody_removed_by_force_keeps_the_next_run_waiting() -> None:
    world = _cut_off()
    world.settle()
    del world.pods["job-1-0"]
    world.settle()
    assert_waits_for_the_fence(world)


@pytest.mark.parametrize("lost", [["n2"], ["n1", "n2"]])
def test_one_worker_of_a_gang_that_may_train_unseen_keeps_the_next_run_waiting(lost: list[str]) -> None:
    """Whatever was seen of the others: the first worker has ended, its node reports or not."""
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    world.exit("job-1-0", 75, json.dumps({"step": 12}))
    for name in lost:
        world.nodes[name] = node(name, ready=False)
    del world.pods["job-1-1"]
    world.settle()
    assert_waits_for_the_fence(world)


def test_a_pod_removed_by_force_from_a_dead_node_keeps_nobody_waiting() -> None:
    world = _cut_off()
    world.settle()
    del world.pods["job-1-0"]
    del world.nodes["n1"]
    world.settle()
    assert world.status.service is not None
    retry_at = world.status.service.retry_at
    assert retry_at is None or parse_time(retry_at) <= world.now + 10.5
