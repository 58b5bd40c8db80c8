"""A TrainingJob that was deleted holds nothing, also while a finalizer of somebody's keeps it."""

from support.operator.profile_world import granted
from support.operator.world import World
from synergy_operator.actions import DeleteJob, DeletePod
from synergy_operator.run.take_down import FORCE_SECONDS


def deleted(world: World) -> None:
    """Its owner deletes the job, which has a finalizer that nobody removes."""
    world.job["metadata"] |= {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["example.com/mine"]}


def test_the_workers_of_a_deleted_job_are_told_to_go() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    assert world.status.phase == "Running"
    deleted(world)
    assert [type(action) for action in world.step().todo] == [DeletePod]
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())
    assert world.step().todo == (), "once"
    world.pods.clear()
    assert world.step().todo == ()


def test_a_worker_of_a_deleted_job_on_a_lost_node_goes_in_the_end() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    deleted(world)
    world.step()
    del world.nodes["n1"]
    assert world.step().requeue_after == 30 + FORCE_SECONDS
    world.wait(30 + FORCE_SECONDS)
    world.step()
    assert world.pods == {}


def test_a_profile_series_of_a_deleted_job_ends() -> None:
    world = granted()
    world.bind()
    world.start()
    deleted(world)
    assert [type(action) for action in world.step().todo] == [DeleteJob, DeletePod]
    assert world.jobs == {}
    assert world.step().todo == ()
