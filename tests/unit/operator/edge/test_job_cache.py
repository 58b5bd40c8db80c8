"""The cache of TrainingJobs: kept as JSON, parsed when they are looked at, listed by fingerprint."""

import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.operator.job_life import Life
from support.operator.objects import START, job_manifest
from support.operator.world import World
from synergy_api.names import ANNOTATION_MAY_START, ANNOTATION_OFFER, LABEL_HUB
from synergy_api.resources.training_job import FINISHED
from synergy_operator.edge.caches.jobs import JobCache, turns
from synergy_operator.edge.trimming import VIEW
from synergy_operator.job.reconcile import reconcile
from synergy_operator.views.job import MOST_OBJECT_BYTES, MOST_TEMPLATE_BYTES, JobView, read_job
from synergy_operator.views.observed import Observed
from synergy_operator.views.stored_job import StoredJob, store_job

Json = dict[str, Any]
_PROFILES = ({"state": "Waiting", "fingerprint": "f1"}, {"state": "Waiting", "fingerprint": "f2"}, None)
QUEUED = {"position": 3, "reason": "NoFreeGPU", "message": "waits"}
_EVENTS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("CCCRDL"), st.integers(0, 9)), max_size=60)
"""Name, what happens (Changed, Reported progress, Deleted, a Late answer), and a seed of the content."""


def _stored(**changes: Any) -> StoredJob:
    return store_job(_item(**changes))


def _item(**changes: Any) -> Json:
    manifest = job_manifest(**changes.pop("spec", {}))
    manifest["status"] = {"phase": "Running", "progress": {"run": 1, "steps": 5}, **changes.pop("status", {})}
    manifest["metadata"] = {**manifest["metadata"], "resourceVersion": "7", **changes}
    return manifest


def _drawn(name: str, uid: str, version: int, seed: int) -> Json:
    rng = random.Random(seed)
    status = {
        "phase": rng.choice(("Queued", "Running", "Succeeded", "Failed")),
        "profile": rng.choice(_PROFILES),
        "progress": {"run": 1, "steps": seed},
        "queue": {"position": seed + 1, "reason": "NotEnoughGPUs", "message": rng.choice("mn")},
    }
    return _item(name=name, uid=uid, resourceVersion=str(version), status=status)


@given(_EVENTS, st.integers(1, 3))
def test_whatever_happens_it_has_the_newest_copies_and_lists_what_is_not_finished(
    events: list[tuple[str, str, int]], most_views: int
) -> None:
    cache = JobCache(most_views)
    there: dict[str, Json] = {}
    lives = dict.fromkeys("abcd", 0)
    for version, (name, event, seed) in enumerate(events, start=10):
        uid = f"uid-{name}-{lives[name]}"
        if event == "D":
            if there.pop(name, None) is not None:
                assert cache.drop(("team", name), uid) is not None
                lives[name] += 1
        elif event == "L":  # an answer that was overtaken by the watch
            old = cache.get(("team", name))
            cache.take(_drawn(name, f"uid-{name}-{max(0, lives[name] - 1)}" if name not in there else uid, 1, seed))
            assert cache.get(("team", name)) == old or name not in there
            if name not in there and lives[name] == 0:
                cache.drop(("team", name))
                lives[name] = 1
        else:
            item = _drawn(name, uid, version, seed)
            if event == "R" and name in there:
                progress = {"run": 1, "steps": 100 + seed}
                item = {**there[name], "metadata": item["metadata"]}
                item["status"] = {**item["status"], "progress": progress}
            assert cache.keep(cache.read(item))
            there[name] = item
        assert {stored.name for stored in cache} == set(there)
        for one, item in there.items():
            assert cache.get(("team", one)) == read_job(item)
        _assert_lists(cache)


def _assert_lists(cache: JobCache) -> None:
    """As computed anew from the views."""
    views = [view for stored in cache if (view := cache.get(stored.key)) is not None]
    waiting = [view for view in views if view.status.phase not in FINISHED]
    assert sorted(cache.unfinished()) == sorted(view.key for view in waiting)
    for fingerprint in ("f1", "f2", ""):
        own = [v.key for v in waiting if (v.status.profile.fingerprint if v.status.profile else "") == fingerprint]
        assert sorted(cache.unfinished(fingerprint)) == sorted(own)


@given(st.integers(0, 10_000))
def test_what_is_kept_is_what_was_read_at_every_write_of_a_job_s_life(seed: int) -> None:
    life = Life("job", random.Random(seed))
    for version, _ in enumerate(life.statuses(12), start=1):
        item = life.item(version)
        assert store_job(item).view() == read_job(item)


@given(st.integers(0, 10_000), st.integers(1, 5000))
def test_no_decision_follows_from_the_position(seed: int, position: int) -> None:
    life, world = Life("job", random.Random(seed)), World()
    for version, _ in enumerate(life.statuses(12), start=1):
        item = life.item(version)
        queue = life.status.get("queue")
        if queue is None:
            continue
        moved = {**item, "status": {**life.status, "queue": {**queue, "position": position}}}
        assert store_job(moved).decides_as(store_job(item))
        now = max(life.now, START)
        before, after = (Observed(read_job(one), world.cluster, world.settings) for one in (item, moved))
        assert reconcile(before, now) == reconcile(after, now)


def test_a_report_of_progress_alone_is_told_from_other_changes() -> None:
    before = _stored()
    reported = _stored(resourceVersion="8", status={"progress": {"run": 1, "steps": 6, "stepsPerSecond": 2.0}})
    assert reported.decides_as(before)
    assert not reported.decides_as(None)
    assert not _stored(resourceVersion="8", status={"phase": "Queued"}).decides_as(before)
    assert not _stored(resourceVersion="8", generation=9).decides_as(before)
    assert not _stored(resourceVersion="8", uid="another").decides_as(before)


def test_an_estimate_of_the_start_is_no_news_to_the_operator() -> None:
    told = {"position": 1, "reason": "NoFreeGPU", "message": "waits"}
    times = {"estimatedStart": "2026-01-31T12:00:00Z", "estimatedStartBy": "2026-01-31T13:00:00Z"}
    before = _stored(status={"queue": told})
    assert _stored(resourceVersion="8", status={"queue": told | times}).decides_as(before)
    assert not _stored(resourceVersion="8", status={"queue": {**told, **times, "message": "m"}}).decides_as(before)


def test_what_the_api_server_notes_on_writers_counts_for_the_size_only() -> None:
    kept = _stored(managedFields=[{"manager": "m" * 1000}], annotations={"note": "n" * 1000})
    assert kept.decides_as(_stored())
    assert not kept.too_large
    large = _stored(annotations={"note": "n" * MOST_OBJECT_BYTES})
    assert large.too_large
    assert not large.decides_as(kept)
    assert large.view().too_large


def test_a_status_that_does_not_parse_is_refused_and_the_last_copy_stays() -> None:
    cache = JobCache()
    cache.take(_item())
    with pytest.raises(ValueError, match="status of TrainingJob team/job"):
        cache.read(_item(resourceVersion="8", status={"phase": "Nothing"}))
    kept = cache.get(("team", "job"))
    assert kept is not None
    assert kept.resource_version == "7"


@pytest.mark.parametrize(
    "broken",
    [{"progress": {"run": "x"}}, {"progress": []}, {"queue": {**QUEUED, "position": 0}}, {"progress": {"steps": -1}}],
)
def test_a_report_that_does_not_parse_is_refused_and_the_last_copy_stays(
    broken: Json, caplog: pytest.LogCaptureFixture
) -> None:
    cache = JobCache(most_views=1)
    cache.take(_item(status={"queue": QUEUED}))
    cache.take(_item(name="another"))  # the view of the first is forgotten
    item = _item(resourceVersion="8", status={"queue": QUEUED, **broken})
    with pytest.raises(ValueError, match="status of TrainingJob team/job"):
        cache.take(item)
    assert VIEW not in cache.trim(item)
    assert "team/job stays as it was read last" in caplog.text
    kept = cache.get(("team", "job"))
    assert kept is not None
    assert (kept.resource_version, kept.status.progress and kept.status.progress.steps) == ("7", 5)


def test_a_spec_that_does_not_parse_is_kept_with_its_problem() -> None:
    kept = store_job(_item(spec={"gpus": "many", "managed": 5})).view()
    assert kept.spec is None
    assert kept.spec_error.startswith("spec.gpus")


def test_a_member_of_an_array_is_known_by_its_label_and_owner() -> None:
    owner = {
        "apiVersion": "kube-synergy.dev/v1alpha1",
        "kind": "TrainingJob",
        "name": "sweep",
        "uid": "u",
        "controller": True,
    }
    item = _item(labels={"kube-synergy.dev/array-index": "3", "mine": "x"}, ownerReferences=[owner])
    view = store_job(item).view()
    assert view == read_job(item)
    assert (view.array, view.index) == ("sweep", 3)


def test_the_object_that_a_job_manages_is_found_without_parsing() -> None:
    assert _stored(spec={"managed": {"kind": "Job", "name": "train"}}).managed == ("Job", "train")
    assert _stored().managed is None


@pytest.mark.parametrize("may_start", ["", "1", "2"])
def test_what_a_hub_says_of_the_job_is_kept_and_a_change_of_it_decides(may_start: str) -> None:
    offered = {"labels": {LABEL_HUB: "hub"}, "annotations": {ANNOTATION_OFFER: "2", "example.com/other": "x"}}
    before = _item(**offered)
    item = _item(**{**offered, "annotations": {**offered["annotations"], ANNOTATION_MAY_START: may_start}})
    assert store_job(item).view().waits_for_hub is (may_start != "2")
    assert store_job(item).view() == read_job(item)
    assert not store_job(item).decides_as(store_job(before))


def test_a_job_that_another_controller_manages_is_not_kept() -> None:
    cache = JobCache()
    assert VIEW in cache.trim(_item())
    assert VIEW not in cache.trim(_item(spec={"managedBy": "kube-synergy.dev/clusters"}))


def test_starts_do_not_wait_behind_thousands_of_new_jobs() -> None:
    """The places come while the jobs wait already, and those of one namespace cost another no turn."""
    cache = JobCache()
    line = turns(cache)
    for name in ("new-0", "a", "new-1", "b", "new-2"):
        cache.keep(_stored(name=name, uid=name))
        line.append(("team", name))
    for name in ("x", "y"):
        cache.keep(_stored(name=name, uid=name, namespace="other"))
        line.append(("other", name))
    for name, state in (("a", "Granted"), ("b", "Revoked"), ("new-2", "Released")):
        allocation = {"run": 1, "state": state}
        cache.keep(_stored(name=name, uid=name, resourceVersion="8", status={"allocation": allocation}))
        line.append(("team", name))
    assert [line.popleft() for _ in range(len(line))] == [
        ("team", "new-0"), ("other", "x"), ("team", "a"), ("other", "y"), ("team", "new-1"), ("team", "b"),
        ("team", "new-2"),
    ]  # fmt: skip


@pytest.mark.parametrize("odd", [None, "Granted", ["Granted"], {"state": 1}])
def test_an_allocation_that_is_none_holds_no_place(odd: object) -> None:
    stored = store_job({**_item(), "status": {"phase": "Queued", "allocation": odd, "profile": odd}})
    assert (stored.placed, stored.fingerprint) == (False, "")


def _template(junk: object, **pod: object) -> Json:
    container = {"name": "main", "image": "i", "command": ["c"], "resources": {"limits": {"cpu": 1}}}
    return {"spec": {"containers": [container], "junk": junk, **pod}}


def test_jobs_with_templates_above_the_limit_cost_little_memory() -> None:
    """As Python's objects each of these templates takes more than 6 MB."""
    cache = JobCache()
    junk: list[Json] = [{} for _ in range(MOST_TEMPLATE_BYTES // 3 + 1)]
    items = [_item(name=f"j{i}", uid=f"u{i}", spec={"template": _template(junk)}) for i in range(10)]
    tracemalloc.start()
    for item in items:
        cache.keep(cache.trim(item)[VIEW])
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(cache) == 10
    assert kept_bytes < 500_000


def test_of_a_template_above_the_limit_an_outline_and_the_size_are_kept() -> None:
    sidecar = {"name": "logs", "image": "l", "restartPolicy": "Always"}
    pod = {"terminationGracePeriodSeconds": 5, "initContainers": [{**sidecar, "command": ["c"]}]}
    item = _item(spec={"template": _template("x" * MOST_TEMPLATE_BYTES, **pod)})
    view = store_job(item).view()
    assert view == read_job(item)
    assert view.template_too_large
    assert view.spec is not None
    container = {"name": "main", "image": "i", "resources": {"limits": {"cpu": 1}}}
    outline = {"terminationGracePeriodSeconds": 5, "containers": [container], "initContainers": [sidecar]}
    assert view.spec.template == {"spec": outline}
    larger = _item(spec={"template": _template("x" * (MOST_TEMPLATE_BYTES + 1), **pod)})
    assert not store_job(larger).decides_as(store_job(item)), "its condition tells the size"


@pytest.mark.parametrize(
    "template",
    [
        {"spec": "x" * MOST_TEMPLATE_BYTES},
        _template("", containers="x" * MOST_TEMPLATE_BYTES),
        _template("", containers=["x" * MOST_TEMPLATE_BYTES]),
        _template("", affinity={"x": "x" * MOST_TEMPLATE_BYTES}),
    ],
    ids=["no spec", "no containers", "no container", "a large outline"],
)
def test_an_outline_has_a_container_and_is_small_whatever_the_template_is(template: Json) -> None:
    kept = store_job(_item(spec={"template": template}))
    spec = kept.view().spec
    assert spec is not None
    assert spec.template["spec"]["containers"] == [{}]
    assert len(kept.body) < 10_000


def test_the_view_of_a_job_that_is_gone_is_not_kept() -> None:
    cache = JobCache()
    for name in ("a", "b"):
        cache.take(_item(name=name, uid=name))
    cache.drop(("team", "a"))
    assert list(cache._views) == [("team", "b")]
    cache.drop(("team", "b"))
    assert cache._view_bytes == 0


def test_views_of_large_jobs_are_kept_as_long_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[str] = Counter()
    view = StoredJob.view

    def count(stored: StoredJob) -> JobView:
        parsed[stored.name] += 1
        return view(stored)

    monkeypatch.setattr(StoredJob, "view", count)
    cache = JobCache()
    for number in range(20):
        cache.take(_item(name=f"j{number}", uid=f"u{number}", spec={"template": _template("x" * 200_000)}))
    for number in range(19, -1, -1):
        cache.get(("team", f"j{number}"))
    again = {name for name, times in parsed.items() if times == 2}
    assert again == {f"j{number}" for number in range(10)}, "ten of them are within the limit"
