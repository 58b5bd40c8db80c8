"""What steps write into the hub and into a worker cluster, and what they leave alone."""

from math import inf
from typing import Any

import pytest

from support.api_server.kept_objects import KeptObjects
from support.extender.cluster import NOW, allocation, job_object, share
from synergy_api.names import (
    ANNOTATION_GIVE_UP,
    ANNOTATION_MAY_START,
    FINALIZER_CLUSTERS,
    LABEL_HUB,
    MANAGED_BY_CLUSTERS,
)
from synergy_api.parts.relations.clusters import ClusterOffer, waits_for_hub
from synergy_api.timestamps import format_time
from synergy_clusters.actions import Actions, Again
from synergy_clusters.choice import Prospect
from synergy_clusters.claims.fence import Fence
from synergy_clusters.copies import manifest
from synergy_clusters.forecast.prospects import Placed
from synergy_clusters.protocol import Seen, Step
from synergy_clusters.views import HubJob, read_copy, read_hub_job
from synergy_clusters.worker_clusters.worker import Worker
from synergy_kube import ApiError, Conflict

KEY = ("team", "j")
EAST = ClusterOffer(name="east", offer=1, since=format_time(NOW))
Json = dict[str, Any]


class Stage:
    """A hub with one job, and the worker cluster `east`."""

    def __init__(self, offer: ClusterOffer | None = EAST, **spec: Any) -> None:
        item = job_object(
            namespace="team", spec={"managedBy": MANAGED_BY_CLUSTERS, **spec}, finalizers=[FINALIZER_CLUSTERS]
        )
        status = {"phase": "Pending"} | ({"cluster": offer.to_wire()} if offer is not None else {})
        self.now = NOW
        self.hub = KeptObjects({**item, "status": status})
        self.there = KeptObjects()
        self.east = Worker("east", self.there, "hub", lambda key: None)
        self.east.claimed = True
        fence = Fence(self.hub, "hub", "kube-synergy", lambda: (), lambda: ())
        self.actions = Actions(self.hub, "hub", fence, lambda: self.now)

    @property
    def job(self) -> HubJob:
        return read_hub_job(self.hub.items[KEY])

    @property
    def copy(self) -> Json:
        return self.there.items[KEY]

    async def step(self, step: Step, *, reachable: bool = True) -> HubJob | None:
        copy = read_copy(self.copy) if KEY in self.there.items else None
        return await self.actions.carry_out(step, KEY, self.job, Seen(reachable, 9.0, copy), self.east)

    async def made_by(self, hub: str) -> None:
        """A copy of a job of this name from another hub."""
        other = read_hub_job(job_object(namespace="team", uid="another", spec={"managedBy": MANAGED_BY_CLUSTERS}))
        await self.there.create(None, manifest(other, hub, 1), "team")  # type: ignore[arg-type]


async def test_a_job_is_fixed_before_its_copy_may_start() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    assert waits_for_hub(stage.copy["metadata"])
    await stage.step(Step.FIX)
    assert (stage.job.offer.fixed, stage.job.offer.uid) == (True, stage.copy["metadata"]["uid"])
    assert waits_for_hub(stage.copy["metadata"])
    await stage.step(Step.PERMIT)
    assert not waits_for_hub(stage.copy["metadata"])


async def test_a_hub_whose_job_has_changed_since_fixes_nothing() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    old = stage.job
    await stage.hub.merge_patch(None, "j", {"spec": {"suspend": True}}, "team")  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        await stage.actions.carry_out(Step.FIX, KEY, old, Seen(True, 0.0, read_copy(stage.copy)), stage.east)
    assert not stage.job.offer.fixed


async def test_only_the_copy_that_was_fixed_is_permitted() -> None:
    stage = Stage(EAST.model_copy(update={"fixed": True, "uid": "the-copy-before"}))
    await stage.step(Step.CREATE)
    with pytest.raises(Conflict):
        await stage.step(Step.PERMIT)
    assert ANNOTATION_MAY_START not in stage.copy["metadata"]["annotations"]


async def test_the_copy_of_another_hub_is_never_deleted() -> None:
    stage = Stage()
    await stage.made_by("another hub")
    await stage.hub.merge_patch(None, "j", {"metadata": {"deletionTimestamp": format_time(NOW)}}, "team")  # type: ignore[arg-type]
    await stage.step(Step.DELETE_COPY)
    assert stage.copy["metadata"]["labels"] == {LABEL_HUB: "another hub"}
    assert not stage.job.finalizer


async def test_a_copy_that_has_lost_its_label_is_deleted_with_its_job() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    await stage.there.merge_patch(None, "j", {"metadata": {"labels": {LABEL_HUB: None}}}, "team")  # type: ignore[arg-type]
    with pytest.raises(Again):
        await stage.step(Step.DELETE_COPY)
    assert not stage.there.items


async def test_a_name_that_is_taken_is_a_refusal_of_that_cluster_for_a_while() -> None:
    stage = Stage()
    await stage.made_by("another hub")
    await stage.step(Step.CREATE)
    assert (stage.job.offer.name, stage.job.offer.offer) == ("", 1)
    assert stage.actions.refusals(stage.job).keys() == {"east"}
    stage.now += 31
    assert stage.actions.refusals(stage.job) == {}


async def test_an_api_server_in_trouble_refuses_nothing() -> None:
    stage = Stage()
    stage.there.refuses = {"create": 500}
    with pytest.raises(ApiError):
        await stage.step(Step.CREATE)
    assert stage.job.offer == EAST
    assert stage.actions.refusals(stage.job) == {}


async def test_a_change_that_the_cluster_refuses_does_not_keep_the_hub_from_learning_how_the_job_goes() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    stage.copy["status"] = {"phase": "Succeeded"}
    stage.there.refuses = {"patch": 422}
    with pytest.raises(Again):
        await stage.step(Step.UPDATE)
    assert stage.job.item["status"]["phase"] == "Succeeded"


async def test_a_job_that_has_no_cluster_says_since_when() -> None:
    stage = Stage(offer=None)
    nothing = Placed(None, {"east": "no GPU"})
    await stage.actions.offer(KEY, stage.job, nothing)
    first = stage.job
    assert first.offer.since == format_time(NOW)
    stage.now += 60
    assert await stage.actions.offer(KEY, first, nothing) is None
    assert stage.job.version == first.version


async def test_a_hub_that_has_lost_an_offer_takes_it_over_from_the_copy() -> None:
    stage = Stage(offer=None)
    job = stage.job
    body = manifest(job, "hub", 3)
    body["metadata"]["annotations"][ANNOTATION_MAY_START] = "3"
    copy = read_copy({**await stage.there.create(None, body, "team"), "status": {"phase": "Running"}})  # type: ignore[arg-type]
    known = await stage.actions.take_over(KEY, job, "east", copy)
    assert (known.offer.name, known.offer.offer, known.offer.fixed, known.offer.uid) == ("east", 3, True, copy.uid)
    assert known.item["status"]["phase"] == "Running"
    with pytest.raises(Conflict):
        await stage.actions.take_over(KEY, job, "west", copy)


async def test_a_copy_that_is_gone_ends_the_job_unless_it_is_still_there() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    await stage.step(Step.FIX)
    with pytest.raises(Again):
        await stage.step(Step.FAIL)
    stage.there.items.clear()
    await stage.step(Step.FAIL)
    assert stage.job.item["status"]["phase"] == "Failed"


async def test_what_was_given_up_stays_so_wherever_the_job_goes() -> None:
    stage = Stage(EAST.model_copy(update={"fixed": True}))
    await stage.step(Step.GIVE_UP, reachable=False)
    assert (stage.job.offer.name, stage.job.offer.fixed, stage.job.offer.given_up) == ("", False, 1)
    await stage.actions.offer(KEY, stage.job, Placed(None))
    assert stage.job.offer.given_up == 1
    await stage.actions.offer(KEY, stage.job, Placed(Prospect(NOW, NOW + 1, "west")))
    assert (stage.job.offer.name, stage.job.offer.offer, stage.job.offer.given_up) == ("west", 2, 1)


async def test_the_annotation_goes_where_the_cluster_answers() -> None:
    stage = Stage(EAST.model_copy(update={"fixed": True}))
    await stage.hub.merge_patch(None, "j", {"metadata": {"annotations": {ANNOTATION_GIVE_UP: "1"}}}, "team")  # type: ignore[arg-type]
    assert stage.job.given_up
    await stage.step(Step.KEEP)
    assert not stage.job.given_up
    assert stage.job.offer.fixed


async def test_a_finished_job_goes_after_its_time() -> None:
    stage = Stage(ttlSecondsAfterFinished=60)
    stage.hub.items[KEY]["status"] |= {"phase": "Succeeded", "completionTime": format_time(NOW)}
    with pytest.raises(Again):
        await stage.step(Step.NOTHING)
    stage.now += 61
    await stage.step(Step.NOTHING)
    assert not stage.hub.items


async def test_progress_is_told_every_ten_seconds_and_a_phase_at_once() -> None:
    stage = Stage()
    await stage.step(Step.CREATE)
    stage.copy["status"] = {"phase": "Running", "progress": {"steps": 1}, "allocation": allocation(share("n"))}
    await stage.step(Step.TELL)
    stage.copy["status"]["progress"] = {"steps": 2}
    with pytest.raises(Again):
        await stage.step(Step.TELL)
    stage.now += 10
    await stage.step(Step.TELL)
    assert stage.job.item["status"]["progress"] == {"steps": 2}


@pytest.mark.parametrize(
    ("start", "problems", "words"),
    [
        (NOW, {}, "at once, by forecast"),
        (NOW + 60, {"west": "no GPU"}, f"at {format_time(NOW + 60)}, by forecast"),
        (inf, {}, "as soon as it can"),
        (inf, {"east": "it died", "west": "no GPU"}, "as soon as it can; there is no forecast: it died"),
    ],
)
async def test_an_offer_says_when_the_cluster_starts_the_job(
    start: float, problems: dict[str, str], words: str
) -> None:
    stage = Stage(offer=None)
    written = await stage.actions.offer(KEY, stage.job, Placed(Prospect(start, inf, "east"), problems))
    assert written is not None
    assert written.offer.name == "east"
    (condition,) = written.item["status"]["conditions"]
    assert condition["message"] == f"cluster east has the job and starts it {words}"
