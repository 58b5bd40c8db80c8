"""The observer writes each broken promise that nodes, pods and TrainingJobs can show into its book, and no other."""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from chaos.observer.book import Book
from chaos.observer.uptime import Uptime
from chaos.observer.watchman import Watchman
from support.api_server.told_client import ToldClient
from support.waiting import eventually
from synergy_api import names
from synergy_api.timestamps import format_time
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

Object = Mapping[str, Any]
OURS, ELSEWHERE = "ours", "elsewhere"
ROOM = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"}
SHARE = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "2"}
"""Half a node."""
GOING = "2027-01-01T00:00:00Z"


class World:
    """The observer, and what it is told."""

    def __init__(self) -> None:
        self.client = ToldClient()
        self.book = Book()
        self.uptime = Uptime(lambda: True)
        nodes = [{"metadata": {"name": name}, "status": {"allocatable": ROOM}} for name in ("n1", "n2")]
        self.client.holds(NODES, nodes)
        self.watchman = Watchman(self.client, OURS, self.book, self.uptime)

    async def pods(self, *pods: Object) -> None:
        for pod in pods:
            await self.client.tell(PODS, "MODIFIED", pod)

    async def gone(self, *pods: Object) -> None:
        for pod in pods:
            await self.client.tell(PODS, "DELETED", pod)

    async def job(self, **status: Any) -> None:
        await self.client.tell(TRAINING_JOBS, "MODIFIED", training_job(**status))

    async def leased(self, seconds: float, **allocation: Any) -> None:
        """The first run of job j has its place for so long from now."""
        until = format_time(time.time() + seconds)
        await self.job(allocation={"run": 1, "state": "Granted", "leaseUntil": until, **allocation})

    @property
    def broken(self) -> str:
        return "\n".join(self.book.broken)


@pytest_asyncio.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """It looks at events alone."""
    monkeypatch.setattr("chaos.observer.watchman._AGAIN_SECONDS", 3600.0)
    made = World()
    async with made.watchman:
        yield made


@pytest_asyncio.fixture
async def alert_world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """It looks all the time."""
    monkeypatch.setattr("chaos.observer.watchman._AGAIN_SECONDS", 0.001)
    made = World()
    async with made.watchman:
        yield made


def pod(name: str, node: str, phase: str, requests: Object, namespace: str = OURS, **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": requests}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    whole = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", **metadata}
    return {"metadata": whole, "spec": spec, "status": {"phase": phase}}


def worker(
    run: int = 1,
    rank: int = 0,
    *,
    of: int = 1,
    job: str = "j",
    node: str = "n1",
    planned: str = "",
    phase: str = "Running",
    requests: Object = SHARE,
    **metadata: Any,
) -> dict[str, Any]:
    labels = {names.LABEL_JOB: job, names.LABEL_RUN: str(run), names.LABEL_RANK: str(rank)}
    metadata["labels"] = {**labels, names.LABEL_ROLE: names.ROLE_WORKER}
    metadata["annotations"] = {names.ANNOTATION_PLANNED_NODE: planned or node or "n1"}
    made = pod(f"{job}-{run}-{rank}", node, phase, requests, **metadata)
    made["spec"]["containers"][0]["env"] = [{"name": "WORLD_SIZE", "value": str(of)}]
    return made


def training_job(suspend: bool = False, **status: Any) -> dict[str, Any]:
    workers = {"workers": [{"node": "n1", "gpus": 2, "cpuMillis": 4000, "memoryBytes": 2**35}]}
    if "allocation" in status:
        status["allocation"] = workers | status["allocation"]
    spec = {"gpus": 2, "steps": 100, "suspend": suspend}
    return {"metadata": {"name": "j", "namespace": OURS}, "spec": spec, "status": {"phase": "Running", **status}}


async def test_a_good_life_breaks_nothing(world: World) -> None:
    await world.leased(100.0)
    for phase, nodes in (("Pending", ("", "")), ("Pending", ("n1", "n2")), ("Running", ("n1", "n2"))):
        await world.pods(*(worker(1, rank, of=2, node=nodes[rank], phase=phase) for rank in (0, 1)))
    other = [pod("other", "n1", phase, SHARE) for phase in ("Pending", "Running", "Succeeded")]
    await world.pods(*other)
    world.uptime.seconds += 1000.0
    world.book.ended(("j", 1), "its workers finished")
    ended = [worker(1, rank, of=2, node=f"n{rank + 1}", phase="Succeeded") for rank in (0, 1)]
    await world.pods(*ended)
    await world.pods(worker(2, phase="Running", requests=ROOM))
    await world.gone(other[-1], *ended)
    assert world.broken == ""
    assert world.watchman.events == 16
    assert world.watchman.phases == {"j": "Running"}


@pytest.mark.parametrize("dimension", list(ROOM))
async def test_our_pods_never_ask_for_more_than_a_node_has(world: World, dimension: str) -> None:
    rest = {**SHARE, dimension: ROOM[dimension]}
    await world.pods(worker(job="a"), worker(job="b", node="n2", requests=rest), worker(job="c"))
    assert world.broken == ""
    await world.pods(worker(job="d", node="n2", requests={**SHARE, dimension: "1"}))
    assert "n2 over-allocated" in world.broken
    assert f"{dimension} by b-1-0, d-1-0" in world.broken


async def test_who_is_gone_or_has_ended_asks_for_nothing(world: World) -> None:
    await world.pods(worker(job="a", requests=ROOM))
    await world.gone(worker(job="a", requests=ROOM))
    await world.pods(worker(job="b", requests=ROOM), worker(job="b", requests=ROOM, phase="Failed"))
    await world.pods(worker(job="c", requests=ROOM))
    assert world.broken == ""


async def test_a_worker_that_grew_in_its_place_counts_as_it_is(world: World) -> None:
    grown = worker(job="b")
    really = {"name": "main", "resources": {"requests": {**SHARE, "cpu": "4500m"}}}
    grown["status"]["containerStatuses"] = [really]
    await world.pods(worker(job="a"), worker(job="b"))
    assert world.broken == ""
    await world.pods(grown)
    assert "8.5 of 8 cpu" in world.broken


async def test_a_node_has_its_time_to_refuse_a_pod_of_others(world: World) -> None:
    await world.pods(worker(requests=ROOM), pod("other", "n1", "Pending", SHARE))
    world.uptime.seconds += 14.0
    await world.pods(worker(requests=ROOM))
    assert world.broken == ""
    await world.pods(pod("other", "n1", "Failed", SHARE))
    world.uptime.seconds += 100.0
    await world.pods(worker(requests=ROOM), pod("another", "n1", "Pending", SHARE))
    assert world.broken == ""


async def test_a_node_that_refuses_nobody_is_seen_without_an_event(alert_world: World) -> None:
    await alert_world.pods(worker(requests=ROOM), pod("other", "n1", "Pending", SHARE))
    assert alert_world.broken == ""
    alert_world.uptime.seconds += 16.0
    await breaks(alert_world)
    assert "n1 over-allocated" in alert_world.broken


async def breaks(world: World) -> None:
    async def probe() -> str:
        return world.broken

    await eventually(probe, seconds=10.0, what="a broken promise", every=0.001)


@pytest.mark.parametrize(("node", "broken"), [("", False), ("n1", False), ("n2", True)])
async def test_a_worker_is_where_it_was_planned(world: World, node: str, broken: bool) -> None:
    await world.pods(worker(node=node, planned="n1", phase="Pending"))
    assert ("pod j-1-0 is on n2, planned was n1" in world.broken) == broken
    assert bool(world.broken) == broken


@pytest.mark.parametrize(
    ("first", "second", "broken"),
    [
        (worker(1), worker(2, phase="Pending"), True),
        (worker(1, phase="Pending", node="n2"), worker(2), True),
        (worker(1, deletionTimestamp=GOING), worker(2), True),
        (worker(1, phase="Failed"), worker(2), False),
        (worker(1), worker(2, node="", phase="Pending"), False),
        (worker(1), worker(2, job="k"), False),
    ],
)
async def test_two_runs_never_hold_places_at_once(world: World, first: Object, second: Object, broken: bool) -> None:
    await world.pods(first, second)
    assert ("pods of runs 1 and 2 of j hold places" in world.broken) == broken
    assert bool(world.broken) == broken


@pytest.mark.parametrize("left", [[], [worker(1, phase="Failed", requests=ROOM)]])
async def test_what_changed_while_nobody_watched_was_not_at_once(world: World, left: list[Object]) -> None:
    await world.pods(worker(1, phase="Pending", requests=ROOM))
    await world.client.relist(PODS, [worker(2, requests=ROOM), *left])
    assert world.broken == ""
    await world.pods(worker(3, phase="Pending", requests=ROOM))
    assert "pods of runs 2 and 3" in world.broken
    assert "n1 over-allocated" in world.broken


async def ends(world: World, how: str, killed: Object) -> None:
    if how == "at once":
        await world.gone(killed)
    else:
        await world.pods({**killed, "metadata": {**killed["metadata"], "deletionTimestamp": GOING}})


@pytest.mark.parametrize("how", ["at once", "by a deletion"])
async def test_nobody_is_killed_before_its_lease_ends(world: World, how: str) -> None:
    await world.leased(100.0)
    await world.pods(worker())
    await world.leased(0.0, state="Revoked")
    await ends(world, how, worker())
    assert "pod j-1-0 was killed" in world.broken
    await world.gone(worker(deletionTimestamp=GOING))
    assert len(world.book.broken) == 1


async def test_a_run_may_end_with_its_lease_or_by_itself(world: World) -> None:
    await world.leased(0.0)
    await world.pods(worker())
    await ends(world, "by a deletion", worker())
    await world.gone(worker(deletionTimestamp=GOING))
    await world.leased(100.0, run=2)
    await world.pods(worker(2), worker(2, phase="Succeeded"))
    await world.gone(worker(2, phase="Succeeded"))
    await world.leased(100.0, run=3)
    await world.pods(worker(3, phase="Pending"))
    await world.gone(worker(3, phase="Pending"))
    assert world.broken == ""


@pytest.mark.parametrize(
    "why", ["", "told", "book", "user", "node", "node of another", "gang", "gang lately", "gang at end"]
)
async def test_a_fault_or_its_user_may_end_a_run_before_its_lease(
    world: World, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why != "gang lately":
        monkeypatch.setattr("chaos.observer.watchman._LATE_SECONDS", 0.0)
    await world.leased(100.0)
    first, second = worker(of=2), worker(1, 1, of=2, node="n2")
    await world.pods(first, second)
    match why:
        case "told":
            await world.job(service={"run": 1, "last": {"run": 1}})
        case "book":
            world.book.ended(("j", 1), "a pod was deleted")
        case "user":
            await world.client.tell(TRAINING_JOBS, "MODIFIED", training_job(suspend=True, service={"run": 1}))
        case "node" | "node of another":
            world.book.fails("n1" if why == "node" else "n2")
        case "gang":
            await world.pods(worker(1, 1, of=2, node="n2", phase="Failed"))
        case "gang at end":
            await world.pods(worker(1, 1, of=2, node="n2", phase="Failed"))
            await world.job(service={"run": 1, "last": {"run": 1}})
            await world.pods(second)
    await ends(world, "at once" if why == "node" else "by a deletion", first)
    assert ("pod j-1-0 was killed" in world.broken) == (why in ("", "told"))
    assert bool(world.broken) == (why in ("", "told"))


async def test_a_gang_is_half_there_for_seconds_only(world: World) -> None:
    await world.pods(worker(of=2), worker(1, 1, of=2, node="", phase="Pending"))
    world.uptime.seconds += 39.0
    await world.pods(worker(of=2))
    assert world.broken == ""
    world.uptime.seconds += 2.0
    await world.pods(worker(of=2))
    assert "gang j run 1 was half there for 41 s (j-1-0: Running on n1, j-1-1: Pending on no node)" in world.broken
    world.uptime.seconds += 100.0
    await world.pods(worker(of=2))
    assert len(world.book.broken) == 1


async def test_a_gang_may_wait_as_a_whole(world: World) -> None:
    waiting = [worker(1, rank, of=2, node="", phase="Pending") for rank in (0, 1)]
    await world.pods(*waiting)
    world.uptime.seconds += 1000.0
    await world.pods(*waiting)
    assert world.broken == ""


async def test_a_half_gang_is_seen_without_an_event(alert_world: World) -> None:
    await alert_world.pods(worker(of=2))
    assert alert_world.broken == ""
    alert_world.uptime.seconds += 41.0
    await breaks(alert_world)
    assert "gang j run 1 was half there" in alert_world.broken


async def test_a_gang_that_is_whole_between_begins_anew(world: World) -> None:
    second = worker(1, 1, of=2, node="n2")
    for _ in range(3):
        await world.pods(worker(of=2))
        world.uptime.seconds += 30.0
        await world.pods(second)
        world.uptime.seconds += 100.0
        await world.gone(second)
    await world.gone(worker(of=2))
    world.uptime.seconds += 100.0
    await world.pods(worker(2, of=2))
    assert world.broken == ""


@pytest.mark.parametrize("how", ["at once", "by a deletion"])
@pytest.mark.parametrize(("namespace", "phase"), [(OURS, "Running"), (OURS, "Succeeded"), (ELSEWHERE, "Running")])
async def test_a_pod_of_others_is_never_displaced(world: World, how: str, namespace: str, phase: str) -> None:
    other = pod("other", "n1", phase, SHARE, namespace)
    await world.pods(other)
    assert world.broken == ""
    await ends(world, how, other)
    broken = namespace == OURS and phase == "Running"
    assert ("pod other, which is not ours, was displaced" in world.broken) == broken
    assert bool(world.broken) == broken
    await world.gone({**other, "metadata": {**other["metadata"], "deletionTimestamp": GOING}})
    assert len(world.book.broken) == broken


async def test_a_measurement_of_ours_may_be_taken_away(world: World) -> None:
    measured = pod("measured", "n1", "Running", SHARE, labels={names.LABEL_ROLE: names.ROLE_PROFILE})
    await world.pods(measured)
    await world.gone(measured)
    assert world.broken == ""


async def test_what_a_job_itself_shows_is_written(world: World) -> None:
    await world.job(phase="Succeeded")
    assert world.broken == ""
    await world.job(phase="Queued")
    assert "j: was Succeeded and is Queued" in world.broken
    await world.client.tell(TRAINING_JOBS, "DELETED", training_job(phase="Queued"))
    assert "TrainingJob j is gone" in world.broken
