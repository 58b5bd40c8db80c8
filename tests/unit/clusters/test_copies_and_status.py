"""The copy in a worker cluster, and what the hub's job says of it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, job_object, share
from synergy_api.names import (
    ANNOTATION_HUB_GENERATION,
    ANNOTATION_HUB_JOB_UID,
    ANNOTATION_MAY_START,
    ANNOTATION_OFFER,
    FINALIZER_CLUSTERS,
    LABEL_HUB,
    MANAGED_BY_CLUSTERS,
)
from synergy_api.parts.relations.clusters import ClusterOffer, managed_elsewhere, waits_for_hub
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time
from synergy_clusters.copies import difference, manifest, permit, update
from synergy_clusters.status import failed, is_urgent, offered_now, told
from synergy_clusters.views import Copy, HubJob, ours, read_copy, read_hub_job

OFFER = ClusterOffer(name="east", offer=2, since=format_time(NOW))
GOOD = (True, say(Reason.STAYS_IN_CLUSTER, cluster="east"))


def hub_job(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> HubJob:
    item = job_object(spec={"managedBy": MANAGED_BY_CLUSTERS, **(spec or {})}, generation=3, **metadata)
    return read_hub_job({**item, "status": status or {}})


def made(job: HubJob, **status: Any) -> Copy:
    """The copy as its cluster has it."""
    body = manifest(job, "hub", 2)
    return read_copy({**body, "metadata": {**body["metadata"], "uid": "copy"}, "status": status})


def test_a_copy_says_whose_it_is_and_may_not_start() -> None:
    job = hub_job({"ttlSecondsAfterFinished": 5}, labels={"team": "a", f"{LABEL_HUB}x": "b"}, finalizers=["x"])
    body = manifest(job, "hub", 2)
    assert body["metadata"]["labels"] == {"team": "a", LABEL_HUB: "hub"}
    assert body["metadata"]["annotations"] == {
        ANNOTATION_HUB_JOB_UID: "uid-j", ANNOTATION_HUB_GENERATION: "3", ANNOTATION_OFFER: "2",
    }  # fmt: skip
    assert "finalizers" not in body["metadata"]
    assert body["spec"].keys() == {"gpus", "steps", "template"}
    assert not managed_elsewhere(body["spec"])
    assert waits_for_hub(body["metadata"])
    permitted = body["metadata"]["annotations"] | permit("copy", 2)["metadata"]["annotations"]
    assert not waits_for_hub({**body["metadata"], "annotations": permitted})


@pytest.mark.parametrize(
    ("labels", "annotations", "waits"),
    [
        ({}, {}, False),
        ({LABEL_HUB: "h"}, {}, True),
        ({}, {ANNOTATION_OFFER: "2"}, True),
        ({}, {ANNOTATION_OFFER: "2", ANNOTATION_MAY_START: "2"}, False),
        ({LABEL_HUB: "h"}, {ANNOTATION_MAY_START: "1"}, True),
        ({LABEL_HUB: "h"}, {ANNOTATION_OFFER: "2", ANNOTATION_MAY_START: "1"}, True),
        ({LABEL_HUB: "h"}, {ANNOTATION_OFFER: "2", ANNOTATION_MAY_START: "2"}, False),
    ],
)
def test_only_the_permission_for_its_own_offer_lets_a_copy_start(labels: Any, annotations: Any, waits: bool) -> None:
    assert waits_for_hub({"labels": labels, "annotations": annotations}) is waits


def test_jobs_of_other_controllers_are_not_ours() -> None:
    assert ours(job_object(spec={"managedBy": MANAGED_BY_CLUSTERS}))
    assert not ours(job_object())
    assert not ours(job_object(spec={"managedBy": "kueue.x-k8s.io/multikueue"}))
    assert managed_elsewhere({"managedBy": "kueue.x-k8s.io/multikueue"})
    assert not managed_elsewhere({"managedBy": "kube-synergy.dev/operator"})


def test_a_copy_asks_once_it_has_a_place_for_training() -> None:
    held = allocation(share("n"))
    assert made(hub_job(), allocation=held).asks
    assert not made(hub_job()).asks
    assert not made(hub_job(), allocation={**held, "purpose": "Profile"}).asks
    assert not made(hub_job(), allocation={**held, "state": "Revoked"}).asks
    assert not made(hub_job(), allocation=held, service={"endedRun": 1}).asks


def test_annotations_that_somebody_has_changed_make_a_copy_of_no_job() -> None:
    job, body = hub_job(), manifest(hub_job(), "hub", 2)
    body["metadata"]["annotations"][ANNOTATION_OFFER] = "many"
    forged = read_copy({**body, "metadata": {**body["metadata"], "uid": "copy"}})
    assert not forged.is_of(job, OFFER)
    assert made(job).is_of(job, OFFER)
    assert not made(job).is_of(job, OFFER.model_copy(update={"uid": "another"}))


NAMES = st.sampled_from("abc")
VALUES = st.one_of(
    st.integers(), st.lists(st.integers(), max_size=2), st.dictionaries(NAMES, st.integers(), max_size=2)
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)


def merged(before: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merged(result.get(field), value)
    return result


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(OBJECTS, OBJECTS)
def test_the_patch_of_a_spec_makes_the_one_from_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merged(before, difference(before, after)) == after


def test_an_update_names_the_copy_and_the_generation() -> None:
    job = hub_job({"suspend": True, "weight": 2.0})
    patch = update(job, {"metadata": {"uid": "copy"}, "spec": {**job.item["spec"], "weight": 1.0, "gpuTypes": ["T4"]}})
    assert patch["metadata"] == {"uid": "copy", "annotations": {ANNOTATION_HUB_GENERATION: "3"}}
    assert patch["spec"] == {"weight": 2.0, "gpuTypes": None, "managedBy": None}


def test_the_hub_tells_what_the_copy_tells_but_not_where_its_pods_are() -> None:
    job = hub_job()
    running = {"type": "Running", "status": "True", "reason": "R", "lastTransitionTime": format_time(NOW)}
    copy = made(
        job, phase="Running", progress={"steps": 3}, allocation=allocation(share("n")), conditions=[running],
        observedGeneration=1,
    )  # fmt: skip
    status = told(job, OFFER, copy, GOOD, NOW)
    assert status["phase"] == "Running"
    assert status["progress"] == {"steps": 3}
    assert status["observedGeneration"] == 3
    assert "allocation" not in status
    assert [one["type"] for one in status["conditions"]] == ["Offered", "Running"]
    assert status["cluster"] == {"name": "east", "offer": 2, "fixed": False, "since": format_time(NOW)}
    assert told(read_hub_job({**job.item, "status": status}), OFFER, copy, GOOD, NOW + 9) == status, "nothing to write"


def test_while_the_cluster_is_away_the_hub_keeps_what_it_knows_until_another_has_the_job() -> None:
    before = {"phase": "Running", "summary": {"gpus": "1 T4"}, "cluster": OFFER.to_wire()}
    job = hub_job(status=before)
    away = offered_now(job, reachable=False, away_since=NOW)
    status = told(job, OFFER, None, away, NOW)
    assert (status["phase"], status["summary"]) == ("Running", {"gpus": "1 T4"})
    later = read_hub_job({**job.item, "status": status})
    assert told(later, OFFER, None, offered_now(later, reachable=False, away_since=NOW + 60), NOW + 60) == status
    west = OFFER.model_copy(update={"name": "west", "offer": 3})
    assert told(job, west, None, GOOD, NOW)["phase"] == "Pending"
    assert "summary" not in told(job, west, None, GOOD, NOW)


def test_a_job_whose_copy_is_gone_has_failed_for_good() -> None:
    job = hub_job(status={"phase": "Running", "queue": {"position": 1}, "cluster": OFFER.to_wire()})
    status = failed(job, NOW)
    assert (status["phase"], status["completionTime"]) == ("Failed", format_time(NOW))
    assert status["conditions"][-1]["reason"] == "GoneInCluster"
    assert "queue" not in status
    assert read_hub_job({**job.item, "status": status}).finished


def test_progress_alone_can_wait() -> None:
    before = {"phase": "Queued", "queue": {"position": 2, "reason": "NoFreeGPU"}, "progress": {"steps": 1}}
    assert not is_urgent(before, {**before, "progress": {"steps": 2}, "queue": {"position": 1, "reason": "NoFreeGPU"}})
    assert is_urgent(before, {**before, "phase": "Running"})
    assert is_urgent(before, {**before, "queue": {"position": 2, "reason": "QuotaFull"}})


def test_the_finalizer_and_the_offer_are_read_from_the_object() -> None:
    job = hub_job(status={"cluster": OFFER.to_wire()}, finalizers=[FINALIZER_CLUSTERS])
    assert (job.finalizer, job.offer) == (True, OFFER)
    assert not hub_job().finalizer
    assert hub_job().offer.name == ""
    with pytest.raises(ValueError, match="offer"):
        hub_job(status={"cluster": {"name": "east"}})
