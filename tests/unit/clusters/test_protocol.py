"""The next step for one job of the hub: what it is in each state, and that no sequence of events lets it run twice."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_api.parts.relations.clusters import ClusterOffer
from synergy_clusters.protocol import Seen, Step, is_left_over, next_step, unknown_copy
from synergy_clusters.views import Copy, HubJob

SINCE = "2026-11-26T00:00:00Z"
AWAY_S = 60.0
NOWHERE = ClusterOffer(offer=0, since=SINCE)
EAST = ClusterOffer(name="east", offer=1, since=SINCE)
GIVEN_UP = ClusterOffer(offer=1, since=SINCE, given_up=1)
FIXED = EAST.model_copy(update={"fixed": True, "uid": "copy-1"})


def hub_job(**more: Any) -> HubJob:
    facts = {
        "uid": "job", "version": "1", "generation": 1, "deleting": False, "suspended": False, "finished": False,
        "finalizer": True, "offer": EAST, "item": {},
    }  # fmt: skip
    return HubJob(**{**facts, **more})


def copy_of(**more: Any) -> Copy:
    facts = {
        "uid": "copy-1", "hub_job_uid": "job", "offer": 1, "generation": "1", "may_start": False, "deleting": False,
        "asks": False, "status": {},
    }  # fmt: skip
    return Copy(**{**facts, **more})


HERE = Seen(reachable=True)
WITH_COPY = Seen(reachable=True, copy=copy_of())
AWAY = Seen(reachable=False, away_s=10.0)
LONG_AWAY = Seen(reachable=False, away_s=AWAY_S)
ANSWERS_ONLY = Seen(reachable=False, away_s=AWAY_S, answers=True)


@pytest.mark.parametrize(
    ("job", "seen", "step"),
    [
        (hub_job(offer=NOWHERE, finalizer=False), AWAY, Step.PROTECT),
        (hub_job(offer=NOWHERE), AWAY, Step.CHOOSE),
        (hub_job(offer=NOWHERE, suspended=True), AWAY, Step.TELL),
        (hub_job(), HERE, Step.CREATE),
        (hub_job(), WITH_COPY, Step.TELL),
        (hub_job(generation=2), WITH_COPY, Step.UPDATE),
        (hub_job(), Seen(True, copy=copy_of(asks=True)), Step.FIX),
        (hub_job(suspended=True), Seen(True, copy=copy_of(asks=True)), Step.TELL),
        (hub_job(), Seen(True, copy=copy_of(may_start=True)), Step.FIX),
        (hub_job(suspended=True), Seen(True, copy=copy_of(may_start=True)), Step.FIX),
        (hub_job(), Seen(True, copy=copy_of(offer=0)), Step.DELETE_COPY),
        (hub_job(), Seen(True, copy=copy_of(hub_job_uid="earlier")), Step.DELETE_COPY),
        (hub_job(), Seen(True, copy=copy_of(deleting=True)), Step.TELL),
        (hub_job(), AWAY, Step.TELL),
        (hub_job(), ANSWERS_ONLY, Step.CHOOSE),
        (hub_job(offer=FIXED, gives_up=1), ANSWERS_ONLY, Step.TELL),
        (hub_job(offer=FIXED, gives_up=1, deleting=True), ANSWERS_ONLY, Step.TELL),
        (hub_job(), LONG_AWAY, Step.CHOOSE),
        (hub_job(suspended=True), LONG_AWAY, Step.TELL),
        (hub_job(offer=FIXED), WITH_COPY, Step.PERMIT),
        (hub_job(offer=FIXED), Seen(True, copy=copy_of(may_start=True)), Step.TELL),
        (hub_job(offer=FIXED), LONG_AWAY, Step.TELL),
        (hub_job(offer=FIXED, gives_up=1), LONG_AWAY, Step.GIVE_UP),
        (hub_job(offer=FIXED, gives_up=1, suspended=True), LONG_AWAY, Step.GIVE_UP),
        (hub_job(offer=FIXED, gives_up=1), AWAY, Step.TELL),
        (hub_job(offer=FIXED, gives_up=2), LONG_AWAY, Step.TELL),
        (hub_job(offer=FIXED, gives_up=1), WITH_COPY, Step.KEEP),
        (hub_job(offer=FIXED, gives_up=1), HERE, Step.KEEP),
        (hub_job(gives_up=1), LONG_AWAY, Step.CHOOSE),
        (hub_job(gives_up=1), WITH_COPY, Step.TELL),
        (hub_job(offer=GIVEN_UP, gives_up=1), AWAY, Step.CHOOSE),
        (hub_job(offer=FIXED, gives_up=1, deleting=True), LONG_AWAY, Step.RELEASE),
        (hub_job(offer=FIXED, gives_up=1, deleting=True), AWAY, Step.TELL),
        (hub_job(offer=FIXED, gives_up=1, deleting=True), WITH_COPY, Step.DELETE_COPY),
        (hub_job(offer=FIXED), HERE, Step.FAIL),
        (hub_job(offer=FIXED), Seen(True, copy=copy_of(uid="another")), Step.FAIL),
        (hub_job(offer=FIXED), Seen(True, copy=copy_of(deleting=True)), Step.TELL),
        (hub_job(finished=True, offer=FIXED), HERE, Step.NOTHING),
        (hub_job(deleting=True, offer=NOWHERE), AWAY, Step.RELEASE),
        (hub_job(deleting=True), LONG_AWAY, Step.RELEASE),
        (hub_job(deleting=True, offer=FIXED), LONG_AWAY, Step.TELL),
        (hub_job(deleting=True, offer=FIXED), WITH_COPY, Step.DELETE_COPY),
        (hub_job(deleting=True, finished=True, offer=FIXED), HERE, Step.DELETE_COPY),
        (hub_job(deleting=True, finalizer=False), WITH_COPY, Step.NOTHING),
    ],
)
def test_each_state_has_one_step(job: HubJob, seen: Seen, step: Step) -> None:
    assert next_step(job, seen, away_s=AWAY_S) is step


@pytest.mark.parametrize(
    ("job", "cluster", "copy", "left_over"),
    [
        (None, "east", copy_of(), True),
        (hub_job(uid="later"), "east", copy_of(), True),
        (hub_job(), "east", copy_of(), False),
        (hub_job(), "west", copy_of(), True),
        (hub_job(offer=EAST.model_copy(update={"offer": 2})), "east", copy_of(), True),
        (hub_job(), "west", copy_of(offer=2), False),
        (hub_job(offer=GIVEN_UP), "east", copy_of(may_start=True), True),
        (hub_job(offer=FIXED), "east", copy_of(), False),
        (hub_job(offer=FIXED), "west", copy_of(offer=2), True),
    ],
)
def test_copies_of_offers_that_are_over_are_left_over(
    job: HubJob | None, cluster: str, copy: Copy, left_over: bool
) -> None:
    assert is_left_over(job, cluster, copy) is left_over


@pytest.mark.parametrize(
    ("job", "copies", "cluster"),
    [
        (hub_job(), {"east": copy_of()}, None),
        (hub_job(), {"west": copy_of(offer=0)}, None),
        (hub_job(), {"east": copy_of(offer=3)}, "east"),
        (hub_job(), {"east": copy_of(), "west": copy_of(offer=2)}, "west"),
        (hub_job(), {"east": copy_of(may_start=True)}, None),
        (hub_job(), {"north": copy_of(offer=3), "west": copy_of(may_start=True)}, "west"),
        (hub_job(), {"west": copy_of(offer=2, hub_job_uid="earlier")}, None),
        (hub_job(), {"west": copy_of(offer=2, deleting=True)}, None),
        (hub_job(offer=FIXED), {"west": copy_of(offer=2, may_start=True)}, None),
        (hub_job(offer=GIVEN_UP), {"east": copy_of(may_start=True)}, None),
        (hub_job(offer=GIVEN_UP), {"east": copy_of(may_start=True), "west": copy_of(offer=2)}, "west"),
        (hub_job(deleting=True), {"west": copy_of(offer=2)}, None),
        (hub_job(finished=True), {"west": copy_of(offer=2)}, None),
    ],
)
def test_a_copy_of_an_offer_that_the_hub_has_lost_is_found(
    job: HubJob, copies: dict[str, Copy], cluster: str | None
) -> None:
    assert unknown_copy(job, copies) == cluster


@dataclass
class World:
    """The hub's object, and the copies in two clusters; controllers that act on what they have read some time ago."""

    job: HubJob = field(default_factory=lambda: hub_job(offer=NOWHERE))
    copies: dict[str, Copy] = field(default_factory=dict)
    reachable: dict[str, bool] = field(default_factory=lambda: {"east": True, "west": True})
    uids: int = 0
    started: set[tuple[str, str]] = field(default_factory=set)

    def write(self, read: HubJob, offer: ClusterOffer) -> None:
        if read.version == self.job.version:
            self.job = replace(self.job, offer=offer, version=str(int(self.job.version) + 1))

    def act(self, read: HubJob, copies: dict[str, Copy], cluster: str, now_reachable: bool) -> None:
        """One step of a controller that has read this."""
        there_are = {one: copy for one, copy in copies.items() if self.reachable[one] and now_reachable}
        if (unknown := unknown_copy(read, there_are)) is not None:
            copy = there_are[unknown]
            uid = copy.uid if copy.may_start else ""
            given_up = read.offer.given_up
            offer = ClusterOffer(
                name=unknown, offer=copy.offer, fixed=copy.may_start, since=SINCE, uid=uid, given_up=given_up
            )
            return self.write(read, offer)
        name = read.offer.name
        seen = Seen(self.reachable.get(name, False) and now_reachable, AWAY_S, copies.get(name))
        step = next_step(read, seen, away_s=AWAY_S)
        there = self.copies.get(name)
        given_up = read.offer.given_up
        if step is Step.CHOOSE:
            offer = ClusterOffer(name=cluster, offer=read.offer.offer + 1, since=SINCE, given_up=given_up)
            self.write(read, offer)
        elif step is Step.GIVE_UP:
            self.write(read, ClusterOffer(offer=read.offer.offer, since=SINCE, given_up=read.offer.offer))
        elif step is Step.KEEP and read.version == self.job.version:
            self.job = replace(self.job, gives_up=0, version=str(int(self.job.version) + 1))
        elif step is Step.CREATE and there is None:
            self.uids += 1
            self.copies[name] = copy_of(uid=f"copy-{self.uids}", offer=read.offer.offer, generation="1")
        elif step is Step.FIX and seen.copy is not None:
            self.write(read, read.offer.model_copy(update={"fixed": True, "uid": seen.copy.uid}))
        elif step is Step.PERMIT and there is not None and seen.copy is not None and there.uid == seen.copy.uid:
            self.copies[name] = replace(there, may_start=there.offer == read.offer.offer)
        elif step is Step.DELETE_COPY and there is not None and seen.copy is not None and there.uid == seen.copy.uid:
            del self.copies[name]
        for one, copy in list(self.copies.items()):
            if self.reachable[one] and is_left_over(self.job, one, copy):
                del self.copies[one]
        return None

    def restore(self, past: HubJob) -> None:
        """The hub's API server has a backup's data; versions go on."""
        self.job = replace(past, version=str(int(self.job.version) + 1))

    def lose(self, cluster: str) -> None:
        """The cluster is lost with all that ran there, and a user says so."""
        self.reachable[cluster] = False
        if self.job.offer.name == cluster and self.job.offer.fixed:
            version = str(int(self.job.version) + 1)
            self.job = replace(self.job, gives_up=self.job.offer.offer, version=version)
            self.started = {one for one in self.started if one[0] != cluster}

    def find(self, cluster: str) -> None:
        """What was lost is there again, all its pods gone."""
        self.reachable[cluster] = True

    def cluster_works(self, cluster: str) -> None:
        """The cluster gives its copy a place, and starts it if it may."""
        copy = self.copies.get(cluster)
        if copy is None:
            return
        if copy.may_start and copy.offer > (self.job.offer.given_up or 0):
            self.started.add((cluster, copy.uid))
        self.copies[cluster] = replace(copy, asks=True)


EVENTS = st.one_of(
    st.tuples(st.just("act"), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["east", "west"]), st.booleans()),
    st.tuples(st.just("reach"), st.sampled_from(["east", "west"]), st.booleans()),
    st.tuples(st.just("works"), st.sampled_from(["east", "west"])),
)


@given(st.lists(EVENTS, max_size=80))
def test_no_sequence_of_events_starts_a_job_twice(events: list[tuple[Any, ...]]) -> None:
    """Controllers act on what they read up to three events ago, so two of them may act on the same state; clusters
    come and go."""
    world = World()
    past = [(world.job, dict(world.copies))]
    for event in events:
        if event[0] == "act":
            _, job_age, copies_age, cluster, sees = event
            job, copies = past[max(0, len(past) - 1 - job_age)][0], past[max(0, len(past) - 1 - copies_age)][1]
            world.act(job, copies, cluster, sees)
        elif event[0] == "reach":
            world.reachable[event[1]] = event[2]
        else:
            world.cluster_works(event[1])
        past.append((world.job, dict(world.copies)))
        assert len(world.started) <= 1
        may = [one for one in world.copies.values() if one.may_start]
        assert len(may) <= 1
        assert not may or world.job.offer.fixed


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("act"), st.sampled_from(["east", "west"])),
            st.tuples(st.just("restore"), st.integers(0, 20)),
            st.tuples(st.just("works"), st.sampled_from(["east", "west"])),
        ),
        max_size=60,
    )
)
def test_a_hub_that_is_restored_from_a_backup_starts_no_job_twice_while_all_clusters_answer(
    events: list[tuple[Any, Any]],
) -> None:
    world = World()
    past = [world.job]
    for kind, what in events:
        if kind == "act":
            world.act(world.job, dict(world.copies), what, True)
        elif kind == "restore":
            world.restore(past[max(0, len(past) - 1 - what)])
        else:
            world.cluster_works(what)
        past.append(world.job)
        assert len(world.started) <= 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("act"), st.sampled_from(["east", "west"]), st.integers(0, 2)),
            st.tuples(st.sampled_from(["works", "lose", "find"]), st.sampled_from(["east", "west"]), st.just(0)),
        ),
        max_size=60,
    )
)
def test_a_job_given_up_where_its_cluster_is_lost_runs_elsewhere_and_only_once(
    events: list[tuple[str, str, int]],
) -> None:
    world = World()
    past = [(world.job, dict(world.copies))]
    for kind, cluster, age in events:
        if kind == "act":
            job, copies = past[max(0, len(past) - 1 - age)]
            world.act(job, copies, cluster, True)
        else:
            {"works": world.cluster_works, "lose": world.lose, "find": world.find}[kind](cluster)
        past.append((world.job, dict(world.copies)))
        assert len(world.started) <= 1
    for lost, other in (("east", "west"), ("west", "east")):
        if world.job.offer.name == lost and world.job.offer.fixed and world.job.gives_up == world.job.offer.offer:
            world.reachable |= {lost: False, other: True}
            for _ in range(8):
                world.act(world.job, dict(world.copies), other, True)
                world.cluster_works(other)
            assert {cluster for cluster, _ in world.started} == {other}


def test_the_world_of_the_property_does_start_jobs() -> None:
    world = World()
    for _ in range(6):
        world.act(world.job, dict(world.copies), "west", True)
        world.cluster_works("west")
    assert world.started == {("west", "copy-1")}
