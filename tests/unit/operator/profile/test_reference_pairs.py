"""A new job beside reference jobs on a shared GPU: asked for, run as two Jobs each, read, kept, and shared."""

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from support.api_server.odd_templates import odd_templates
from support.operator.objects import GIB, Json, node
from support.operator.profile_world import AUTO, failed, run_point
from support.operator.world import World
from synergy_api.parts.usage import ReferencePair
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.throughput_profile import ThroughputProfileSpec
from synergy_operator.profile.pairs.references import MOST_MODELS, next_pair, reference_table
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.stored_job import StoredJob, store_job

PAIRS = Profiling(reference_pairs=2, reference_pair_seconds=60, runs_per_point=1)
MEMORY = "2Gi"


def shared_node(name: str = "n1", replicas: int = 2) -> Json:
    """One GPU of 16 GiB that the device plugin shares by MPS."""
    found = node(name, gpus=replicas)
    labels = {"replicas": replicas, "sharing-strategy": "mps", "count": 1, "memory": 16384}
    found["metadata"]["labels"] |= {f"nvidia.com/gpu.{key}": str(value) for key, value in labels.items()}
    return found


def usage(model: str = "", memory: str = MEMORY) -> Json:
    return {"gpuType": "V100", "compute": 0.4, "bandwidth": 0.2, "memory": memory, "model": model}


def sharing(model: str = "", **more: Any) -> Json:
    return {"allowed": True, "usage": [usage(model)], **more}


def matrix(speed: float = 8.0) -> Json:
    return {"gpuType": "V100", "cpuMillis": [2000], "memoryBytes": [4 * GIB], "stepsPerSecond": [[speed]]}


def reference(name: str, model: str, **spec: Any) -> StoredJob:
    """A reference whose matrix is given; it makes 8 steps/s alone."""
    told = {"sharing": sharing(model, reference=True), "profile": {"mode": "Provided", "matrices": [matrix()]}}
    world = World([shared_node()], name=name, **{**told, **spec})
    world.settle()
    return store_job(world.job)


def world_with(*references: StoredJob, profiling: Profiling = PAIRS, **spec: Any) -> World:
    """A new job that has been measured alone: 9 steps/s at the most."""
    world = World([shared_node()], **{"profile": AUTO, "sharing": sharing("New"), **spec})
    world.references, world.profiling = references, profiling
    world.settle()
    grant(world)
    world.settle()
    while any(not job["status"] for job in world.jobs.values()):
        run_point(world, lambda cpu: min(9.0, cpu / 500))
    return world


def grant(world: World, devices: int = 2) -> int:
    """The plan grants what is asked for: all devices of a GPU."""
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    request = profile.request
    run = world.grant(("n1", 1, request.cpu_millis, request.memory_bytes // GIB), purpose="Profile")
    share = {"node": "n1", "gpus": 1, "cpuMillis": request.cpu_millis, "memoryBytes": request.memory_bytes}
    world.allocate(workers=[{**share, **({"devices": devices} if devices > 1 else {})}])
    return run


def told(speed: float, begin: float = 0.0, seconds: float = 60.0, gpu: str = "GPU-1") -> str:
    """The harness's message of a run that made `speed` steps/s for so long."""
    marks = [[begin + seconds * part / 10, round(speed * seconds * part / 10)] for part in range(11)]
    message = {"outcome": "measured", "steps_per_second": speed, "relative_error": 0.4}
    return json.dumps({**message, "together": {"marks": marks, "gpus": [gpu]}})


def marked(*marks: list[float]) -> str:
    """The message of a run that tells these moments and steps."""
    return json.dumps({"outcome": "measured", "steps_per_second": 2.0, "together": {"marks": marks}})


def open_pair(world: World) -> dict[str, str]:
    """The two Jobs under way, by rank."""
    found = {}
    for name, job in world.jobs.items():
        if not job["status"] and "kube-synergy.dev/reference" in job["metadata"]["annotations"]:
            found[job["metadata"]["labels"]["kube-synergy.dev/rank"]] = name
    return found


def run_pair(world: World, own: str, others: str, code: int = 0) -> str:
    """Let the pair under way run and end. Returns the reference's name."""
    jobs = open_pair(world)
    assert sorted(jobs) == ["0", "1"]
    for name in jobs.values():
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
    world.settle()
    world.wait(70)
    for name, message in ((jobs["0"], own), (jobs["1"], others)):
        world.exit(f"{name}-x", code if message == own else 0, message)
        world.finish_job(name, failed="BackoffLimitExceeded" if code and message == own else "")
        world.settle()
    return str(world.jobs[jobs["0"]]["metadata"]["annotations"]["kube-synergy.dev/reference"])


def pairs_of(world: World) -> list[Any]:
    assert world.status.profile is not None
    return world.status.profile.pairs


def test_without_the_policy_or_references_a_measured_job_is_queued_at_once() -> None:
    for world in (world_with(reference("r", "R"), profiling=Profiling()), world_with()):
        assert world.status.phase == "Queued"
        assert pairs_of(world) == []


def test_a_measured_job_asks_for_a_shared_gpu_and_says_why_it_waits() -> None:
    world = world_with(reference("r", "R"))
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    assert (profile.request.shared, profile.request.gpus, profile.state) == (True, 1, "Waiting")
    assert world.status.phase == "Profiling"
    assert world.reason("Profiled") == "ReferencePairWaiting"
    assert "reference job r" in world.message("Profiled")
    demand = 4500 // 500 * 500
    assert profile.request.cpu_millis >= 2000 + demand


def test_on_a_type_that_the_job_may_not_use_it_is_measured_beside_nobody() -> None:
    """Its matrix there comes from an identical job."""
    world = world_with(reference("r", "R"))
    assert world.status.profile is not None
    assert next_pair(world.observe(), world.view.spec, world.status.profile) is not None
    other = world.view.spec.model_copy(update={"gpu_types": ["T4"]})
    assert next_pair(world.observe(), other, world.status.profile) is None


def test_both_run_on_the_devices_of_one_gpu_with_their_own_commands() -> None:
    other = {"spec": {"containers": [{"name": "t", "image": "other:1", "command": ["python3", "ref.py"]}]}}
    world = world_with(reference("r", "R", template=other))
    grant(world)
    world.settle()
    assert world.reason("Profiled") == "ReferencePairMeasuring"
    jobs = {rank: world.jobs[name] for rank, name in open_pair(world).items()}
    containers = {rank: job["spec"]["template"]["spec"]["containers"][0] for rank, job in jobs.items()}
    assert {rank: one["image"] for rank, one in containers.items()} == {"0": "example/train:1", "1": "other:1"}
    for rank, one in containers.items():
        assert one["resources"]["limits"]["nvidia.com/gpu"] == "1", rank
        assert one["command"][:3] == ["python3", "-m", "synergy_profiler"]
        assert one["command"][one["command"].index("--pair-seconds") + 1] == "60"
    assert containers["1"]["command"][-2:] == ["python3", "ref.py"]
    share = world.status.allocation
    assert share is not None
    cpus = sum(int(one["resources"]["limits"]["cpu"].removesuffix("m")) for one in containers.values())
    assert cpus <= share.workers[0].cpu_millis


def test_of_three_clients_the_reference_takes_the_devices_that_are_left() -> None:
    world = world_with(reference("r", "R"))
    grant(world, devices=3)
    world.settle()
    asked = {
        rank: world.jobs[name]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
        for rank, name in open_pair(world).items()
    }
    assert asked == {"0": "1", "1": "2"}


def test_what_both_keep_is_measured_while_both_train_and_kept_in_status_and_profile() -> None:
    world = world_with(reference("r", "R"), reference("s", "S"))
    run = grant(world)
    world.settle()
    first = run_pair(world, told(6.0), told(4.0, begin=20.0))
    assert first == "r"
    (pair,) = pairs_of(world)
    assert (pair.kept, pair.reference_kept) == (pytest.approx(6 / 9, abs=0.01), pytest.approx(0.5, abs=0.01))
    assert (pair.seconds, pair.gpu_seconds, pair.own_model, pair.problem) == (40.0, 70.0, "New", "")
    assert pair.usage is not None
    assert pair.usage.model == "R"
    assert world.status.phase == "Profiling", "the second pair runs on the same GPU"
    assert run_pair(world, told(9.0), told(8.0)) == "s"
    assert world.status.phase == "Queued"
    assert world.status.service is not None
    assert (world.status.service.ended_run, world.status.service.last.outcome) == (run, "Profiled")  # type: ignore[union-attr]
    assert world.status.service.failures == 0
    published = next(iter(world.profiles.values()))[-1].spec
    assert published is not None
    assert [(one.own_model, one.model, one.reference) for one in published.pairs] == [
        ("New", "R", ""),
        ("New", "S", ""),
    ]


def test_an_identical_job_takes_the_pairs_from_the_profile() -> None:
    world = world_with(reference("r", "R"))
    grant(world)
    world.settle()
    run_pair(world, told(6.0), told(4.0))
    twin = World([shared_node()], name="twin", profile=AUTO, sharing=sharing("New"))
    twin.references, twin.profiling, twin.profiles = world.references, PAIRS, world.profiles
    twin.settle()
    assert twin.status.phase == "Queued"
    assert [pair.model for pair in pairs_of(twin)] == ["R"]


def test_with_a_table_of_references_the_match_says_which_one_the_job_is_like_and_what_was_saved() -> None:
    light, heavy = reference("light", "Light"), reference("heavy", "Heavy")
    table = world_with(light, heavy, sharing=sharing("Alike"), batchSize=5)
    grant(table)
    table.settle()
    speeds = {"light": (9.0, 8.0), "heavy": (4.5, 4.0)}
    for _ in speeds:
        name = next(iter(open_pair(table).values()))
        which = table.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/reference"]
        run_pair(table, *map(told, speeds[which]))
    world = World([shared_node()], profile=AUTO, sharing=sharing("New"), batchSize=7)
    world.references, world.profiling, world.profiles = (light, heavy), PAIRS, table.profiles
    world.settle()
    grant(world)
    world.settle()
    while any(not job["status"] for job in world.jobs.values()):
        run_point(world, lambda cpu: min(9.0, cpu / 500))
    grant(world)
    world.settle()
    while open_pair(world):
        which = world.jobs[open_pair(world)["0"]]["metadata"]["annotations"]["kube-synergy.dev/reference"]
        run_pair(world, *map(told, speeds[which]))
    assert world.status.phase == "Queued"
    profile = world.status.profile
    assert profile is not None
    (match,) = profile.matches
    assert match.references == 3
    assert match.pairs == len(profile.pairs)
    assert match.gpu_seconds == 70.0 * match.pairs
    assert match.saved_gpu_seconds == 70.0 * (3 - match.pairs)
    assert 0.0 < match.confidence <= 1.0


@pytest.mark.parametrize(
    ("own", "others", "code", "problem"),
    [
        (told(6.0), told(4.0, gpu="GPU-2"), 0, "different GPUs"),
        (told(6.0), told(4.0, begin=55.0), 0, "less than 10 s"),
        (told(0.05), told(4.0), 0, "less than 10 s"),
        (failed("Crashed", "exit code 1"), told(4.0), 1, "the job: exit code 1"),
        (failed("Crashed", "exit code 1", "x" * 600 + "\nValueError: bad"), told(4.0), 1, "ValueError: bad"),
        (json.dumps({"outcome": "measured", "steps_per_second": 2.0}), told(4.0), 0, "upgrade the profiler"),
        (marked([0.0, 0], [60.0, 10**20]), told(4.0), 0, "upgrade the profiler"),
        (marked([-1e308, 0], [1e308, 500]), marked([-1e308, 0], [1e308, 501]), 0, "upgrade the profiler"),
    ],
)
def test_a_pair_that_tells_nothing_is_set_aside_with_its_reason_and_fails_nothing(
    own: str, others: str, code: int, problem: str
) -> None:
    world = world_with(reference("r", "R"))
    grant(world)
    world.settle()
    run_pair(world, own, others, code)
    (pair,) = pairs_of(world)
    assert problem in pair.problem
    assert (pair.kept, pair.reference_kept, pair.usage) == (None, None, None)
    assert world.status.phase == "Queued", "nothing is left to try"
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.counted_failures) == (0, 0)
    published = next(iter(world.profiles.values()))[-1].spec
    assert published is not None
    assert published.pairs == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reference", "other"),
        ("reference", "x" * 254),
        ("reference", None),
        ("reference-model", "x" * 129),
        ("cpu-millis", "9" * 5000),
    ],
)
def test_a_pair_whose_jobs_were_changed_is_set_aside_and_fails_nothing(name: str, text: str | None) -> None:
    world = world_with(reference("r", "R"))
    grant(world)
    world.settle()
    own = open_pair(world)["0"]
    for job in open_pair(world).values():
        world.bind(f"{job}-x")
        world.start(f"{job}-x")
    annotations = world.jobs[own]["metadata"]["annotations"]
    for job, message in ((own, told(6.0)), (open_pair(world)["1"], told(4.0))):
        world.exit(f"{job}-x", 0, message)
        world.finish_job(job)
    annotations.pop(f"kube-synergy.dev/{name}")
    annotations |= {f"kube-synergy.dev/{name}": text} if text is not None else {}
    world.settle()
    (pair,) = pairs_of(world)
    assert (pair.reference, pair.model) == ("r", "R")
    changed = name != "cpu-millis"  # nobody reads that of a pair
    assert (pair.kept is None, f"the annotations of Job {own} have been changed" in pair.problem) == (changed, changed)
    assert world.status.phase == "Queued"
    assert world.status.service is not None
    assert world.status.service.failures == 0


def test_after_its_time_the_job_is_queued_without() -> None:
    world = world_with(reference("r", "R"))
    wait = world.step().requeue_after
    assert wait is not None
    assert 0 < wait <= PAIRS.reference_wait_seconds
    world.wait(PAIRS.reference_wait_seconds - 1)
    world.settle()
    assert world.status.phase == "Profiling"
    world.wait(2)
    world.settle()
    assert world.status.phase == "Queued"
    assert pairs_of(world) == []


def test_a_lost_pair_is_tried_again_and_no_failure_is_counted() -> None:
    world = world_with(reference("r", "R"))
    grant(world)
    world.settle()
    for name in open_pair(world).values():
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
    world.settle()
    lost = open_pair(world)["1"]
    del world.pods[f"{lost}-x"]
    world.finish_job(lost, failed="BackoffLimitExceeded")
    world.settle()
    for name in list(world.pods):
        del world.pods[name]
    world.settle()
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert world.status.service.last.outcome == "Evicted"
    assert (world.status.phase, pairs_of(world)) == ("Profiling", [])
    assert world.reason("Profiled") == "ReferencePairWaiting"


def test_of_a_pod_that_lives_on_the_result_is_kept_until_the_other_one_has_ended() -> None:
    world = world_with(reference("r", "R"))
    grant(world)
    world.settle()
    jobs = open_pair(world)
    for name in jobs.values():
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
    world.settle()
    world.exit(f"{jobs['0']}-x", 0, told(6.0))
    world.set_pod(f"{jobs['0']}-x", phase="Running")  # the kubelet is still about to end it, or a sidecar runs on
    world.settle()
    assert set(jobs.values()) <= set(world.jobs), "deleted with its Job, the pod would take its result along"
    assert pairs_of(world) == []
    world.exit(f"{jobs['1']}-x", 0, told(4.0))
    world.finish_job(jobs["1"])
    world.settle()
    assert [pair.kept for pair in pairs_of(world)] == [pytest.approx(6 / 9, abs=0.01)]
    assert jobs["0"] not in world.jobs


def test_a_grant_that_is_not_shared_is_given_back_with_the_reason() -> None:
    world = world_with(reference("r", "R"))
    grant(world, devices=1)
    world.settle()
    (pair,) = pairs_of(world)
    assert "not shared" in pair.problem
    assert world.status.phase == "Queued"


def _next(*references: StoredJob, **spec: Any) -> str | None:
    world = world_with(*references, **spec)
    assert world.view.spec is not None
    assert world.status.profile is not None
    found = next_pair(world.observe(), world.view.spec, world.status.profile)
    return None if found is None else found.reference.name


def test_which_jobs_are_references() -> None:
    assert _next(reference("r", "R")) == "r"
    assert _next(reference("r", "R"), sharing={"allowed": False}) is None, "the job does not share"
    assert _next(reference("r", "New")) is None, "its own model tells nothing"
    big = {"allowed": True, "reference": True, "usage": [usage("R", memory="9Gi")]}
    assert _next(reference("r", "R", sharing=big)) is None, "a client has 8 GiB"
    assert _next(reference("r", "R", profile={"mode": "Skip"})) is None, "its speed alone is not known"


def test_of_many_references_none_is_parsed_to_choose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with(*(reference(f"r{number:02}", f"R{number}") for number in range(30)))
    observed, profile = world.observe(), world.status.profile
    assert observed.job.spec is not None
    assert profile is not None
    monkeypatch.setattr(StoredJob, "view", lambda stored: pytest.fail(f"{stored.name} is parsed"))
    found = next_pair(observed, observed.job.spec, profile)
    assert found is not None
    assert found.reference.name == "r00"


def test_a_reference_whose_sidecar_cannot_be_read_or_asks_for_more_than_its_share_is_left_out() -> None:
    sidecar = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "lots"}}}
    for asked in ("lots", "100"):
        stored = reference("r", "R")
        item = msgspec.json.decode(stored.body)
        sidecar["resources"] = {"requests": {"cpu": asked}}
        item["spec"]["template"]["spec"]["containers"].append(sidecar)
        item["metadata"]["resourceVersion"] = "9"
        assert _next(store_job(item)) is None
        assert _next(store_job(item), reference("s", "S")) == "s"


@pytest.mark.parametrize(
    "containers",
    [
        [],
        [{"name": "train", "image": "i"}],
        [{"name": "train", "image": "i", "command": None}],
        [{"name": "train", "image": "i", "command": []}],
    ],
)
def test_a_reference_without_a_command_is_left_out(containers: list[Json]) -> None:
    """A managed job needs none, and the harness would have nothing to run."""
    item = msgspec.json.decode(reference("r", "R").body)
    item["spec"] |= {"managed": {"apiVersion": "batch/v1", "kind": "Job", "name": "r"}}
    item["spec"]["template"]["spec"]["containers"] = containers
    item["metadata"]["resourceVersion"] = "9"
    stored = store_job(item)
    assert not stored.view().spec_error
    assert _next(stored) is None
    assert _next(stored, reference("s", "S")) == "s"


GRANTED = world_with(reference("r", "R"))
grant(GRANTED)


@given(odd_templates())
@settings(max_examples=100)
def test_no_template_of_a_reference_breaks_the_reconcile_of_another_job(template: Json) -> None:
    """The reference was measured and has ended since: nobody looks at its template any more."""
    world = copy.deepcopy(GRANTED)
    item = msgspec.json.decode(world.references[0].body)
    item["spec"]["template"] = template
    world.references = (store_job({**item, "metadata": {**item["metadata"], "resourceVersion": "9"}}),)
    world.settle()
    assert world.status.phase in ("Profiling", "Queued")


def test_of_many_models_the_table_has_those_that_were_measured_beside_most() -> None:
    """Each job without a model's name is one of its own: to choose among thousands would hold up all jobs."""

    def pair(own: str, model: str) -> ReferencePair:
        told = {"kept": 0.5, "reference_kept": 0.6, "measured_at": "2026-01-01T00:00:00Z"}
        return ReferencePair(gpu_type="V100", model=model, own_model=own, **told)

    def known(own: str) -> KnownProfile:
        told = {"fingerprint": f"hash-of-{own}", "image": "i", "gpus": 1, "matrices": [matrix()]}
        pairs = [pair(own, model).to_wire() for model in ("R", "S")]
        document = {**told, "pairs": pairs, "measuredAt": "2026-01-01T00:00:00Z"}
        return KnownProfile(own, "1", ThroughputProfileSpec.model_validate(document))

    profiles = {own: (known(own),) for own in (f"job-{number:03}" for number in range(100))}
    found = reference_table(profiles, "V100", "New")
    assert found is not None
    assert len(found.models) == MOST_MODELS
    assert {"R", "S", "job-000"} < set(found.models)
