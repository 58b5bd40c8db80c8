"""A place that is not free yet may be retuned: its gated workers take the new size before their gates fall."""

from support.operator.objects import workers_json
from support.operator.world import World
from synergy_api.amounts import Amounts
from synergy_operator.actions import ResizePod, UngatePod
from synergy_operator.views.refusals import Refusals, RefusedResize


def waiting_for_room() -> World:
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16), admitted=False)
    world.settle()
    assert len(world.pod_names()) == 2
    return world


def kinds(world: World) -> list[type]:
    return [type(action) for action in world.step().todo if isinstance(action, ResizePod | UngatePod)]


def test_gated_workers_are_resized_before_they_are_let_go() -> None:
    world = waiting_for_room()
    world.allocate(workers=[workers_json("n1", 2, 4000, 12)], admitted=True)
    assert kinds(world) == [ResizePod, ResizePod]
    assert kinds(world) == [UngatePod, UngatePod]
    requests = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in world.pods.values()]
    assert requests == ["2000m", "2000m"]


def test_a_worker_that_cannot_be_resized_is_let_go_as_it_is() -> None:
    """An API server without in-place resize: the run is taken back if the old size finds no room."""
    world = waiting_for_room()
    world.allocate(workers=[workers_json("n1", 2, 4000, 12)], admitted=True)
    refused = RefusedResize(Amounts(0, 2000, 6 << 30), "no such subresource", world.now)
    world.refusals = Refusals(resizes={pod["metadata"]["uid"]: refused for pod in world.pods.values()})
    assert kinds(world) == [UngatePod, UngatePod]


def test_nobody_is_let_go_before_the_place_is_free() -> None:
    world = waiting_for_room()
    world.allocate(workers=[workers_json("n1", 2, 4000, 12)])
    assert kinds(world) == [ResizePod, ResizePod]
    assert kinds(world) == []
