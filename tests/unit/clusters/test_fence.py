"""Worker clusters know the newest data of their hub: older data of it, and a second hub with a copy, are refused."""

import copy
import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.api_server.followed_objects import FollowedObjects
from synergy_clusters.claims.fence import Fence, Refused
from synergy_clusters.claims.marks import ANNOTATION_TAKE_OVER, HUB_LEASE, NO_MARK, Mark, is_foreign, mark_of
from synergy_clusters.worker_clusters.worker import SILENT_SECONDS, Worker
from synergy_kube import ApiError
from synergy_kube.resources import LEASES

PLACE = "kube-synergy"
NAMES = ("east", "west", "north")
Json = dict[str, Any]


class Hub:
    """A hub's API server and its controller's fence, with the worker clusters as this controller reaches them."""

    def __init__(self, clusters: dict[str, FollowedObjects], data: FollowedObjects | None = None) -> None:
        self.data = data or FollowedObjects()
        self.workers = {name: Worker(name, client, "hub", lambda key: None) for name, client in clusters.items()}
        for worker in self.workers.values():
            worker._copies.synced.set()
        self.unconnected: set[str] = set()
        self.reach(*clusters)
        self.restart()

    def restart(self) -> None:
        """A new process."""
        self.fence = Fence(self.data, "hub", PLACE, self.workers.values, lambda: self.unconnected)

    def reach(self, *names: str) -> None:
        """Only these answer."""
        for name, worker in self.workers.items():
            worker._ever, worker._answered = name in names, time.monotonic() + SILENT_SECONDS * 1000
            worker._tell()

    async def may_act(self) -> bool:
        """Raise the mark, as before a copy may start."""
        try:
            await self.fence.advance()
        except Refused:
            return False
        return True

    @property
    def claimed(self) -> set[str]:
        return {name for name, worker in self.workers.items() if worker.reachable}

    def backup(self) -> dict[Any, Json]:
        return copy.deepcopy(self.data.items)

    def restore(self, items: dict[Any, Json]) -> None:
        """Its API server has a backup's data, and its controller begins anew."""
        self.data.items = copy.deepcopy(items)
        self.restart()


def clusters() -> dict[str, FollowedObjects]:
    return {name: FollowedObjects() for name in NAMES}


def number(items: FollowedObjects) -> int:
    return max((mark_of(item).number for item in items.items.values()), default=0)


async def test_the_mark_is_in_the_hub_and_in_every_cluster_that_answers() -> None:
    there = clusters()
    hub = Hub(there)
    hub.reach("east", "west")
    assert await hub.may_act()
    assert hub.claimed == {"east", "west"}
    hub.restart()
    hub.reach(*NAMES)
    assert hub.claimed == {"east", "west"}
    assert await hub.may_act()
    assert hub.claimed == set(NAMES)
    assert [number(one) for one in (hub.data, *there.values())] == [2, 2, 2, 2]


async def test_a_hub_restored_from_a_backup_is_refused_while_one_cluster_answers_that_knows_better() -> None:
    there = clusters()
    hub = Hub(there)
    assert await hub.may_act()
    old = hub.backup()
    assert await hub.may_act()
    hub.restore(old)
    hub.reach("west")
    for _ in range(3):
        assert not await hub.may_act()
        assert hub.claimed == set()
        hub.restart()
    assert number(hub.data) == 1, "what is refused writes nothing"
    assert not await hub.may_act()
    assert f"{ANNOTATION_TAKE_OVER}=2" in hub.fence.refused


async def test_an_administrator_lets_a_restored_hub_take_over_once_all_clusters_answer() -> None:
    hub = Hub(clusters())
    await hub.may_act()
    old = hub.backup()
    await hub.may_act()
    hub.restore(old)
    hub.reach("west", "north")
    annotation = {"metadata": {"annotations": {ANNOTATION_TAKE_OVER: "2"}}}
    await hub.data.merge_patch(LEASES, HUB_LEASE, annotation, PLACE)
    assert not await hub.may_act()
    assert "These do not answer: east" in hub.fence.refused
    hub.reach(*NAMES)
    hub.unconnected = {"south"}
    assert not await hub.may_act(), "what its kubeconfig does not reach may run jobs"
    assert "These do not answer: south" in hub.fence.refused
    hub.unconnected = set()
    assert await hub.may_act()
    assert hub.fence.refused == ""
    assert ANNOTATION_TAKE_OVER not in hub.data.items[PLACE, HUB_LEASE]["metadata"]["annotations"]
    hub.restore(old)
    await hub.data.merge_patch(LEASES, HUB_LEASE, annotation, PLACE)
    assert not await hub.may_act(), "it was about that mark only"


async def test_of_two_hubs_with_one_identity_only_one_acts() -> None:
    there = clusters()
    one = Hub(there)
    await one.may_act()
    other = Hub(there, FollowedObjects())
    other.restore(one.backup())
    assert await one.may_act()
    assert not await other.may_act()
    other.restore(one.backup())
    assert await other.may_act()
    assert not await one.may_act()


async def test_a_hub_that_has_lost_its_mark_is_refused() -> None:
    hub = Hub(clusters())
    await hub.may_act()
    hub.restore({})
    assert not await hub.may_act()


async def test_a_cluster_restored_from_a_backup_gets_the_mark_again() -> None:
    there = clusters()
    hub = Hub(there)
    await hub.may_act()
    there["east"].items.clear()
    await hub.may_act()
    assert hub.claimed == set(NAMES)


async def test_two_controllers_of_one_hub_do_not_refuse_each_other() -> None:
    there = clusters()
    one = Hub(there)
    two = Hub(there, one.data)
    for _ in range(3):
        assert await one.may_act()
        assert await two.may_act()


@pytest.mark.parametrize(("verb", "problem"), [("get", "cannot be read"), ("create", "cannot be written")])
async def test_a_cluster_that_cannot_take_the_mark_is_left_out_and_says_why(verb: str, problem: str) -> None:
    there = clusters()
    there["west"].refuses = {verb: 403}
    hub = Hub(there)
    assert await hub.may_act()
    assert hub.claimed == {"east", "north"}
    assert problem in hub.workers["west"].problem
    there["west"].refuses = {}
    assert await hub.may_act()
    assert (hub.claimed, hub.workers["west"].problem) == (set(NAMES), "")


async def test_a_hub_whose_own_api_server_refuses_claims_nothing() -> None:
    hub = Hub(clusters())
    hub.data.refuses = {"create": 403}
    with pytest.raises(ApiError):
        await hub.fence.advance()
    assert hub.claimed == set()


@pytest.mark.parametrize(
    ("found", "own", "foreign"),
    [
        (NO_MARK, NO_MARK, False),
        (Mark(1, "a"), NO_MARK, True),
        (Mark(3, "a"), Mark(3, "a"), False),
        (Mark(3, "b"), Mark(3, "a"), True),
        (Mark(2, "b"), Mark(3, "a"), False),
        (Mark(4, "a"), Mark(3, "a"), True),
    ],
)
def test_what_is_foreign(found: Mark, own: Mark, foreign: bool) -> None:
    assert is_foreign(found, own) is foreign


@given(st.lists(st.tuples(st.sampled_from(["act", "reach", "save", "restore"]), st.integers(0, 999)), max_size=40))
async def test_data_from_before_the_last_permission_never_permits_anything_where_that_is_known(
    events: list[tuple[str, int]],
) -> None:
    """What may start is known in every cluster that answered then. With one of them, older data is refused."""
    hub = Hub(clusters())
    saved = [(0, hub.backup())]
    permissions: list[set[str]] = []
    reached, knows = set(NAMES), 0
    for event, seed in events:
        rng = random.Random(seed)
        if event == "reach":
            reached = {name for name in NAMES if rng.random() < 0.6}
            hub.reach(*reached)
        elif event == "save":
            saved.append((knows, hub.backup()))
        elif event == "restore":
            knows, items = rng.choice(saved)
            hub.restore(items)
            hub.reach(*reached)
        else:
            tells = any(reached & then for then in permissions[knows:])
            may = await hub.may_act()
            assert not (may and tells)
            assert may or knows < len(permissions), "its data is the newest"
            if may:
                permissions.append(reached)
                knows = len(permissions)
