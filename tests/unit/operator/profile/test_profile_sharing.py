"""Profiles that identical jobs share, and images whose names come to stand for other images."""

import json

import pytest

from support.operator.objects import GIB, START, node
from support.operator.world import World
from synergy_api.timestamps import format_time
from synergy_operator.profile.known_profiles import best_known, check_profile, fingerprint_of_name, profile_name
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.pod import read_pod
from synergy_operator.views.refusals import Refusals

AUTO = {"mode": "Auto"}
OLD, NEW = (f"registry.example/train@sha256:{letter * 64}" for letter in "ab")
OLD_DIGEST, NEW_DIGEST = "sha256:" + "a" * 64, "sha256:" + "b" * 64
PINNED = {"name": "train", "image": OLD, "command": ["python3", "train.py"]}


def alone(name: str = "job", **spec: object) -> World:
    return World(**{"name": name, "profile": AUTO, **spec})  # type: ignore[arg-type]


def twins(**spec: object) -> tuple[World, World]:
    """Two identical jobs of one cluster, the first a little older."""
    first, second = alone("first", **spec), alone("second", **spec)
    first.job["metadata"]["creationTimestamp"] = format_time(START - 90)
    second.profiles, second.candidates = first.profiles, first.candidates
    return first, second


def request(world: World) -> str:
    """The GPU type it asks for, empty if none."""
    profile = world.status.profile
    return profile.request.gpu_type if profile is not None and profile.request is not None else ""


def give_place(world: World) -> None:
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    wanted = profile.request
    share = ("n1", wanted.gpus, wanted.cpu_millis, wanted.memory_bytes // GIB)
    world.grant(share, purpose="Profile", gpu_type=wanted.gpu_type)
    world.settle()


def run_point(world: World, code: int = 0) -> None:
    """The profile Job that is under way runs and ends."""
    name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
    point = int(world.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/cpu-millis"])
    world.bind(f"{name}-x")
    world.start(f"{name}-x")
    world.settle()
    world.wait(7)
    good = {"outcome": "measured", "steps_per_second": min(9.0, point / 500)}
    bad = {"outcome": "failed", "reason": "Crashed", "message": "exit code 1"}
    world.exit(f"{name}-x", code, json.dumps(bad if code else good))
    world.finish_job(name, failed="BackoffLimitExceeded" if code else "")
    world.settle()


def measure(world: World) -> None:
    give_place(world)
    while world.status.phase == "Profiling" and request(world):
        run_point(world)


def train_once(world: World) -> None:
    """A run that begins, shows its image, and yields."""
    world.grant()
    world.run_all()
    run = world.status.allocation.run if world.status.allocation else 0
    world.revoke()
    world.settle()
    world.exit(f"{world.job['metadata']['name']}-{run}-0", 75)
    world.settle()


def test_of_two_identical_jobs_one_is_measured_and_the_other_waits_for_it() -> None:
    first, second = twins()
    first.settle()
    second.settle()
    assert (request(first), request(second)) == ("V100", "")
    assert (first.status.phase, second.status.phase) == ("Profiling", "Profiling")
    assert second.reason("Profiled") == "ProfileShared"
    assert "TrainingJob first is" in second.message("Profiled")
    assert second.reason("Running") == "WaitingForProfile"
    measure(first)
    second.settle()
    assert (first.status.phase, second.status.phase) == ("Queued", "Queued")
    assert second.reason("Profiled") == "ProfileKnown"
    assert second.jobs == {}


def test_whose_job_in_another_namespace_is_measured_is_not_told() -> None:
    first, second = twins()
    first.job["metadata"]["namespace"] = "secret"
    first.settle()
    second.settle()
    assert "the identical TrainingJob of another namespace is measured first" in second.message("Profiled")


def test_both_may_have_asked_before_they_saw_each_other() -> None:
    first, second = twins()
    second.settle()
    assert request(second) == "V100"
    first.step()
    second.settle()
    first.settle()
    assert (request(first), request(second)) == ("V100", "")


def test_a_job_that_is_being_measured_goes_on_although_an_older_one_comes() -> None:
    first, second = twins()
    second.settle()
    give_place(second)
    first.settle()
    assert request(first) == ""
    assert "TrainingJob second is" in first.message("Profiled")
    run_point(second)
    assert second.reason("Profiled") == "ProfileMeasuring"


def test_of_two_that_are_being_measured_the_younger_gives_its_place_back_after_its_point() -> None:
    first, second = twins()
    second.settle()
    first.settle()
    second.candidates = type(second.candidates)()  # it has not seen the other
    second.settle()
    give_place(second)
    give_place(first)
    second.candidates = first.candidates
    second.candidates.update(second.view.key, second.view)
    second.settle()
    assert len(second.jobs) == 1
    run_point(second)
    service = second.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, len(second.jobs)) == ("Yielded", 1)
    assert second.reason("Profiled") == "ProfileShared"
    measure_rest(first)
    second.settle()
    assert second.status.phase == "Queued"


def measure_rest(world: World) -> None:
    while world.status.phase == "Profiling":
        run_point(world)


@pytest.mark.parametrize("end", ["fails", "is suspended", "is deleted"])
def test_when_the_one_that_is_measured_goes_the_other_takes_over(end: str) -> None:
    first, second = twins()
    first.settle()
    second.settle()
    if end == "fails":
        give_place(first)
        run_point(first, code=1)
        run_point(first, code=1)
        assert first.status.phase == "Failed"
    elif end == "is suspended":
        first.edit(lambda spec: spec.update(suspend=True))
        first.settle()
    else:
        second.candidates.update(first.view.key, None)
    second.settle()
    assert request(second) == "V100"
    measure(second)
    assert second.status.phase == "Queued"


@pytest.mark.parametrize("quota", [True, False], ids=["a quota", "labels that no node has"])
def test_nobody_waits_for_a_job_that_something_of_its_own_keeps_from_being_measured(quota: bool) -> None:
    first, second = twins()
    first.settle()
    if quota:
        first.refusals = Refusals(run=1, message="exceeded quota")
        give_place(first)
    else:
        never = {"position": 1, "reason": "NoAllowedNode", "message": "no node has the labels of the template"}
        first.job["status"]["queue"] = never
        first.settle()
    second.settle()
    assert request(second) == "V100"
    first.settle()
    assert request(first) == "", "it waits for the other itself by now"
    measure(second)
    first.settle()
    assert (first.status.phase, second.status.phase) == ("Queued", "Queued")


def test_identical_jobs_on_different_types_are_measured_side_by_side_and_share_it_all() -> None:
    nodes = [node("n1"), node("t1", kind="T4")]
    first, second = alone("first", nodes=nodes, gpuTypes=["T4"]), alone("second", nodes=nodes)
    second.profiles, second.candidates = first.profiles, first.candidates
    first.settle()
    second.settle()
    assert (request(first), request(second)) == ("T4", "V100")
    measure(first)
    measure(second)
    assert second.status.phase == "Queued"
    assert second.status.profile is not None
    assert [matrix.gpu_type for matrix in second.status.profile.matrices] == ["T4", "V100"]
    ((known,),) = first.profiles.values()
    assert {matrix.gpu_type for matrix in known.spec.matrices} == {"T4", "V100"}
    assert {point.gpu_type for point in known.spec.points} == {"T4", "V100"}


def test_a_profile_is_published_under_the_digest_that_was_measured() -> None:
    world = alone()
    world.image_id = OLD
    world.settle()
    measure(world)
    ((known,),) = world.profiles.values()
    assert known.spec.image_digest == OLD_DIGEST
    assert known.name == f"{known.spec.fingerprint}-{'a' * 12}"
    assert fingerprint_of_name(known.name) == known.spec.fingerprint
    other = alone("other")
    other.profiles = world.profiles
    other.settle()
    assert other.status.profile is not None
    assert other.status.profile.image_digest == OLD_DIGEST
    assert known.name in other.message("Profiled")


def test_an_image_that_names_its_digest_needs_no_look_at_what_runs() -> None:
    world = alone(template={"spec": {"containers": [PINNED]}})
    world.image_id = NEW
    world.settle()
    measure(world)
    ((known,),) = world.profiles.values()
    assert known.name == known.spec.fingerprint
    train_once(world)
    assert world.status.phase == "Queued"


def test_a_run_of_another_image_is_measured_anew_before_the_next_run() -> None:
    world = alone()
    world.image_id = OLD
    world.settle()
    measure(world)
    world.image_id = NEW
    world.grant()
    world.run_all()
    assert world.status.phase == "Running"
    assert world.status.profile is not None
    assert world.status.profile.matrices, "what runs goes on as it was planned"
    assert world.reason("Profiled") == "ImageChanged"
    assert NEW_DIGEST in world.message("Profiled")
    world.revoke()
    world.settle()
    world.exit("job-2-0", 75)
    world.settle()
    assert (world.status.phase, request(world)) == ("Profiling", "V100")
    measure(world)
    assert world.status.phase == "Queued"
    assert {known.spec.image_digest for known in next(iter(world.profiles.values()))} == {OLD_DIGEST, NEW_DIGEST}


def test_an_image_that_changes_back_and_forth_is_measured_once_each() -> None:
    world = alone()
    for image in (OLD, NEW):
        world.image_id = image
        world.settle()
        if image == NEW:
            train_once(world)
        measure(world)
    for image in (OLD, NEW, OLD):
        world.image_id = image
        jobs = set(world.jobs)
        train_once(world)
        assert world.status.phase == "Queued"
        assert world.reason("Profiled") == "ProfileKnown"
        assert set(world.jobs) == jobs


def test_an_image_that_changes_in_the_middle_of_a_series_begins_it_anew() -> None:
    world = alone()
    world.image_id = OLD
    world.settle()
    give_place(world)
    run_point(world)
    world.image_id = NEW
    world.bind("job-1-6000-x")
    world.start("job-1-6000-x")
    world.settle()
    world.reap()
    world.settle()
    service, profile = world.status.service, world.status.profile
    assert service is not None
    assert service.last is not None
    assert profile is not None
    assert service.last.reason.startswith("ImageChanged")
    assert profile.image_digest == NEW_DIGEST
    assert profile.points == []
    measure(world)
    ((known,),) = world.profiles.values()
    assert known.spec.image_digest == NEW_DIGEST


def test_a_profile_of_unknown_image_takes_the_first_that_runs_for_it() -> None:
    world = alone()
    world.settle()
    measure(world)
    world.image_id = OLD
    train_once(world)
    assert world.status.phase == "Queued"
    assert world.status.profile is not None
    assert world.status.profile.image_digest == OLD_DIGEST


def known(mark: str, digest: str, measured_at: float) -> dict[str, object]:
    matrix = {"gpuType": "V100", "cpuMillis": [1], "memoryBytes": [1], "stepsPerSecond": [[1.0]]}
    spec = {"fingerprint": mark, "image": "i", "imageDigest": digest, "gpus": 1, "matrices": [matrix]}
    name = profile_name(mark, digest)
    return {
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {**spec, "measuredAt": format_time(measured_at)},
    }


def test_of_several_profiles_the_image_s_own_is_taken_and_without_one_the_newest() -> None:
    cases = ((OLD_DIGEST, 1), (NEW_DIGEST, 2), ("", 3))
    old, new, any_image = (check_profile(known("f" * 8, digest, at))[0] for digest, at in cases)
    assert old is not None
    assert new is not None
    assert any_image is not None
    first, second, third = (KnownProfile(spec.image_digest, "1", spec) for spec in (old, new, any_image))
    assert best_known((first, second, third), OLD_DIGEST) is old
    assert best_known((second, third), OLD_DIGEST) is any_image
    assert best_known((second, KnownProfile("unusable", "1", None)), OLD_DIGEST) is None
    assert best_known((first, second, third), "") is any_image
    assert best_known((first, second), "") is new


def test_a_profile_that_nobody_may_use_is_written_over() -> None:
    world = alone()
    world.settle()
    assert world.status.profile is not None
    mark = world.status.profile.fingerprint
    world.profiles[mark] = (KnownProfile(mark, "7", None),)
    measure(world)
    assert world.status.phase == "Queued"
    ((shown,),) = world.profiles.values()
    assert shown.spec is not None
    assert shown.version != "7"


@pytest.mark.parametrize("name", ["ffffffff", "other"])
def test_a_profile_that_is_not_named_after_what_it_holds_is_not_used(name: str) -> None:
    item = known("f" * 8, OLD_DIGEST, 1)
    item["metadata"] = {"name": name, "resourceVersion": "1"}
    used, finding = check_profile(item)
    assert used is None
    assert "ffffffff-aaaaaaaaaaaa" in finding.message


@pytest.mark.parametrize(
    ("image_id", "digest"),
    [
        (OLD, OLD_DIGEST),
        (f"docker-pullable://{OLD}", OLD_DIGEST),
        (OLD_DIGEST, OLD_DIGEST),
        ("", ""),
        ("registry.example/train:1", ""),
        ("sha256:abc", ""),
    ],
)
def test_the_digest_is_read_from_what_the_runtime_says(image_id: str, digest: str) -> None:
    world = World()
    world.settle()
    world.grant()
    world.image_id = image_id
    world.run_all()
    (pod,) = world.pods.values()
    assert read_pod(pod).image_digest == digest
