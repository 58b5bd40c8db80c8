"""Runs of a managed Job: its own controller makes the pods, the operator gives them their nodes."""

import pytest

from support.operator.managed_world import ManagedWorld, managed_job
from support.operator.objects import Json, node
from synergy_api import names
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_operator.actions import SetSuspended


def last(status: TrainingJobStatus) -> tuple[str, str]:
    assert status.service is not None
    assert status.service.last is not None
    return status.service.last.outcome, status.service.last.reason.partition(":")[0]


def where(world: ManagedWorld) -> list[tuple[str, str, str]]:
    return sorted(
        (name, pod["metadata"]["labels"][names.LABEL_RANK], pod["spec"].get("nodeName", ""))
        for name, pod in world.pods.items()
        if pod["status"]["phase"] not in ("Succeeded", "Failed")
    )


@pytest.fixture
def world() -> ManagedWorld:
    return ManagedWorld()


def suspended(world: ManagedWorld) -> bool:
    return world.owner_view.suspended


def test_it_is_queued_and_stays_suspended_until_its_place_is_free(world: ManagedWorld) -> None:
    world.settle()
    assert (world.status.phase, world.reason("Valid")) == ("Queued", "Accepted")
    world.grant(("n1", 1, 1000, 1), ("n2", 1, 1000, 1), admitted=False)
    world.settle()
    assert (world.status.phase, world.reason("Running"), suspended(world)) == ("Starting", "WaitingForRoom", True)
    world.allocate(admitted=True)
    world.settle()
    assert not suspended(world)
    assert not world.pods, "its own controller makes the pods"


def test_each_pod_goes_to_a_planned_node(world: ManagedWorld) -> None:
    world.bring_up()
    assert world.status.phase == "Running"
    assert where(world) == [("j-001", "0", "n1"), ("j-002", "1", "n2")]
    assert [worker.node for worker in world.status.workers] == ["n1", "n2"]
    assert world.posted().count("WorkersRunning") == 1


def test_it_succeeds_when_the_job_is_complete(world: ManagedWorld) -> None:
    world.bring_up()
    world.wait(60)
    world.exit("j-001", 0)
    world.exit("j-002", 0)
    world.settle()
    assert world.status.phase == "Running", "the Job says when it is complete"
    world.ends("Complete")
    world.settle()
    assert (world.status.phase, world.reason("Finished")) == ("Succeeded", "OwnerSucceeded")
    assert last(world.status) == ("Succeeded", "OwnerSucceeded")
    assert world.status.service is not None
    assert world.status.service.attained_gpu_seconds == 120
    assert len(world.pods) == 2, "its pods stay for their logs"


def test_it_fails_when_the_job_fails_whatever_its_own_limit(world: ManagedWorld) -> None:
    world.bring_up()
    world.exit("j-001", 1)
    world.ends("Failed", "Job has reached the specified backoff limit")
    world.delete("j-002")
    world.reap()
    world.settle()
    assert (world.status.phase, world.reason("Finished")) == ("Failed", "OwnerFailed")
    assert "backoff limit" in world.message("Finished")


def test_a_pod_that_replaces_a_failed_one_takes_its_node(world: ManagedWorld) -> None:
    world.bring_up()
    world.exit("j-001", 1)
    world.settle()
    world.control()
    world.run_all()
    assert where(world) == [("j-002", "1", "n2"), ("j-003", "0", "n1")]
    assert (world.status.phase, last_run(world)) == ("Running", 1)


def last_run(world: ManagedWorld) -> int:
    assert world.status.service is not None
    return world.status.service.run


def test_more_completions_than_parallelism_go_one_after_another() -> None:
    world = ManagedWorld(managed_job(completions=3))
    world.bring_up()
    world.exit("j-001", 0)
    world.control()
    world.run_all()
    assert where(world) == [("j-002", "1", "n2"), ("j-003", "0", "n1")]


def test_a_revoked_run_is_suspended_at_the_lease_s_end_and_resumes_elsewhere(world: ManagedWorld) -> None:
    world.bring_up()
    world.revoke(lease_in=10)
    world.settle()
    assert (world.status.phase, suspended(world)) == ("Yielding", False)
    world.wait(11)
    world.settle()
    assert suspended(world)
    world.control()
    world.settle()
    assert world.status.phase == "Yielding", "its pods still hold the GPUs"
    world.reap()
    world.settle()
    assert (world.status.phase, last(world.status)) == ("Queued", ("Yielded", "LeaseOver"))
    assert world.status.service is not None
    assert world.status.service.preemptions == 1
    world.grant(("n2", 2, 2000, 2))
    world.settle()
    world.control()
    world.run_all()
    assert [place for _, _, place in where(world)] == ["n2", "n2"]
    assert world.status.phase == "Running"


def test_a_suspended_training_job_suspends_its_job(world: ManagedWorld) -> None:
    world.bring_up()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    assert not suspended(world), "the extender revokes first"
    world.revoke()
    world.settle()
    world.control()
    world.reap()
    world.settle()
    assert (world.status.phase, suspended(world)) == ("Suspended", True)


def test_a_run_that_is_revoked_before_its_pods_are_bound_ends_at_once(world: ManagedWorld) -> None:
    world.settle()
    world.grant(("n1", 1, 1000, 1), ("n2", 1, 1000, 1))
    world.settle()
    world.control()
    world.revoke(lease_in=100)
    world.settle()
    assert suspended(world)
    world.control()
    world.settle()
    assert (world.status.phase, last(world.status)) == ("Queued", ("Yielded", "NotStarted"))


def test_one_that_somebody_else_suspends_goes_back_to_the_queue(world: ManagedWorld) -> None:
    world.bring_up()
    world._do(SetSuspended("Job", "j", "uid-j", True))
    world.control()
    world.reap()
    world.settle()
    assert last(world.status) == ("Evicted", "OwnerSuspended")
    assert (world.status.phase, world.reason("Running")) == ("Queued", "OwnerSuspended")


def test_one_that_somebody_else_resumes_is_suspended_again(world: ManagedWorld) -> None:
    world.settle()
    world._do(SetSuspended("Job", "j", "uid-j", False))
    world.settle()
    assert suspended(world)


def test_a_lost_node_ends_the_run(world: ManagedWorld) -> None:
    world.bring_up()
    world.nodes["n1"] = node("n1", ready=False)
    world.settle()
    assert suspended(world)
    assert last(world.status) == ("Evicted", "WorkerLost")
    assert world.status.phase == "Yielding"


def test_a_gang_that_is_half_bound_is_ended(world: ManagedWorld) -> None:
    world.settle()
    world.grant(("n1", 1, 1000, 1), ("n2", 1, 1000, 1))
    world.settle()
    world.control()
    world.settle()
    world.bind("j-001")
    world.cannot_bind("j-002", "0/2 nodes are available")
    world.settle()
    world.wait(60)
    world.settle()
    assert last(world.status) == ("Evicted", "GangNotBound")
    assert suspended(world)


def test_a_job_whose_object_is_gone_is_not_valid(world: ManagedWorld) -> None:
    world.owner = None
    world.settle()
    assert (world.status.phase, world.reason("Valid")) == ("Pending", "OwnerMissing")


def test_an_object_that_loses_its_label_in_a_run_ends_the_run_with_its_pods(world: ManagedWorld) -> None:
    world.bring_up()
    world.owner = None
    world.settle()
    assert last(world.status) == ("Evicted", "OwnerMissing")
    world.exit("j-001", 0)
    world.exit("j-002", 0)
    world.settle()
    assert world.status.phase == "Pending"


def test_an_object_that_can_no_longer_be_managed_is_not_valid(world: ManagedWorld) -> None:
    assert world.owner is not None
    bare: Json = {"spec": {"containers": [{"name": "c"}]}}
    world.owner["spec"]["template"] = bare
    world.settle()
    assert world.reason("Valid") == "NotManaged"


def test_a_deleted_training_job_leaves_its_job_suspended(world: ManagedWorld) -> None:
    world.bring_up()
    world.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.settle()
    assert suspended(world)
