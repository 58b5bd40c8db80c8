"""What workers send each other: which profile run looks, and where its finding stands."""

import json
from typing import Any

import pytest

from support.operator.profile_world import AUTO, granted, knee, measured
from support.operator.world import World
from synergy_api.parts.usage import Traffic
from synergy_operator.profile.result import MeasuredPoint, read_result
from synergy_operator.views.pod import ContainerView

SENT = {
    "source": "Sockets", "workers": 2, "bytes_per_step": 8_000_000, "model_bytes": 8_000_000,
    "sending_seconds": 0.02, "overlap": 0.5,
}  # fmt: skip


def workers_of(job: dict[str, Any]) -> str:
    words = job["spec"]["template"]["spec"]["containers"][0]["command"]
    return str(words[words.index("--workers") + 1])


def finished(**spec: Any) -> tuple[World, list[str]]:
    """A profiled job whose first run tells what was sent, and how many workers each run was told of."""
    world, told = granted(**spec), []
    while world.status.phase == "Profiling" and not all(job["status"] for job in world.jobs.values()):
        (name,) = [name for name, job in world.jobs.items() if not job["status"]]
        told.append(workers_of(world.jobs[name]))
        point = int(world.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/cpu-millis"])
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
        world.settle()
        world.wait(7)
        world.exit(f"{name}-x", 0, measured(knee(point), **({"traffic": SENT} if len(told) == 1 else {})))
        world.finish_job(name)
        world.settle()
    return world, told


def test_the_first_run_looks_at_what_is_sent_and_identical_jobs_learn_it() -> None:
    world, told = finished(gpus=2)
    assert told[0] == "2"
    assert set(told[1:]) == {"1"}
    profile = world.status.profile
    assert profile is not None
    assert profile.traffic == Traffic(**SENT)
    twin = World(gpus=2, profile=AUTO)
    twin.profiles = world.profiles
    twin.settle()
    assert twin.status.profile is not None
    assert (twin.status.profile.traffic, twin.status.profile.points) == (Traffic(**SENT), [])


def test_a_profile_pod_of_one_gpu_has_one_worker() -> None:
    (job,) = granted(gpus=1).jobs.values()
    assert workers_of(job) == "1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "a guess"},
        {"workers": 1},
        {"bytes_per_step": 0},
        {"model_bytes": 1 << 60},
        {"overlap": 1.5},
        {"sending_seconds": -1},
    ],
)
def test_traffic_that_makes_no_sense_is_ignored_and_the_point_counts(wrong: dict[str, object]) -> None:
    message = {"outcome": "measured", "steps_per_second": 2.0, "traffic": SENT}
    known = read_result(ContainerView(message=json.dumps(message)))
    assert known == MeasuredPoint(2.0, 0.0, 0, traffic=Traffic(**SENT))
    message["traffic"] = {**SENT, **wrong}
    assert read_result(ContainerView(message=json.dumps(message))) == MeasuredPoint(2.0, 0.0, 0)
