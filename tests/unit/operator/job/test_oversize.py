"""A job that has been filled up keeps no GPUs."""

from support.operator.world import World
from synergy_operator.actions import ApplyStatus, DeletePod, PostEvent
from synergy_operator.views.job import MOST_TEMPLATE_BYTES


def test_the_pods_of_a_job_whose_status_finds_no_room_go_without_a_write() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.settle()
    assert world.status.phase == "Running"
    world.job["metadata"]["labels"] = {f"example.com/filler-{index}": "x" * 60 for index in range(12_000)}
    todo = world.step().todo
    assert [type(action) for action in todo] == [DeletePod, PostEvent]
    assert world.events[-1].reason == "ObjectTooLarge"
    assert not any(isinstance(action, ApplyStatus) for action in world.step().todo)
    world.pods.clear()
    assert world.step().todo == ()
    world.job["metadata"]["labels"] = {}
    world.settle()
    assert world.status.phase == "Queued"


def test_a_job_that_is_too_large_by_its_template_is_told_so() -> None:
    """There may be room for its status: the API server says where there is not."""
    world = World()
    world.job["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 1_400_000]
    (told,) = [action.status for action in world.step().todo if isinstance(action, ApplyStatus)]
    assert [one.reason for one in told.conditions or () if one.type == "Valid"] == ["SpecTooLarge"]


def test_a_run_goes_on_when_its_template_becomes_too_large() -> None:
    world = World(profile={"mode": "Skip"})
    world.settle()
    world.grant()
    world.run_all()
    world.settle()
    world.edit(lambda spec: spec["template"]["spec"].update(junk=["x" * MOST_TEMPLATE_BYTES]))
    assert {type(action) for action in world.step().todo} <= {ApplyStatus, PostEvent}
    assert (world.status.phase, world.reason("Valid")) == ("Running", "SpecTooLarge")
