"""A run that must leave has the time that its checkpoint takes; what the scheduler ended has not failed."""

import json
from typing import Any

import pytest

from support.operator.world import World
from synergy_api.leaving import leave_seconds
from synergy_api.parts.queues import Preemption
from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_operator.run.forgiveness import HEALTHY_SECONDS, UNREPORTED_SECONDS

SPEC: dict[str, Any] = {"gpus": 1, "steps": 100, "template": {"spec": {"containers": [{"name": "c"}]}}}


def spec(grace: int | None = None, **fields: Any) -> TrainingJobSpec:
    pod = dict(SPEC["template"]["spec"]) | ({"terminationGracePeriodSeconds": grace} if grace is not None else {})
    return TrainingJobSpec.model_validate({**SPEC, "template": {"spec": pod}, **fields})


def saved(seconds: float | None, run: int = 2, **status: Any) -> TrainingJobStatus:
    return TrainingJobStatus.model_validate({"progress": {"run": run, "saveSeconds": seconds}, **status})


@pytest.mark.parametrize(
    ("job", "status", "want"),
    [
        (spec(), TrainingJobStatus(), 30.0),
        (spec(), saved(10.0), 30.0),
        (spec(), saved(100.0), 170.0),
        (spec(grace=300), saved(100.0), 30.0),
        (spec(grace=0), saved(100.0), 200.0),
        (spec(), saved(1e6), 570.0),
        (spec(preemption="Signal"), saved(100.0), 0.0),
        (spec(throughput={"regex": "step"}), saved(100.0), 30.0),
        (spec(), saved(None, service={"last": {"run": 2, "outcome": "Yielded", "saveSeconds": 60.0}}), 90.0),
        (spec(), saved(5.0, 3, service={"last": {"run": 2, "outcome": "Yielded", "saveSeconds": 60.0}}), 30.0),
    ],
)
def test_how_long_a_run_may_take_to_leave(job: TrainingJobSpec, status: TrainingJobStatus, want: float) -> None:
    assert leave_seconds(job, status, 600) == want


def running(**fields: Any) -> World:
    """A job that has reported a checkpoint."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.job["status"]["progress"] = {"run": 1, "steps": 40, "checkpointSteps": 20, **fields}
    return world


def deleted_after(world: World) -> float:
    """How many seconds after its lease the operator deletes the pod of a revoked run."""
    world.revoke()
    world.settle()
    for waited in range(0, 700, 10):
        if any("deletionTimestamp" in pod["metadata"] for pod in world.pods.values()):
            return waited
        world.wait(10)
        world.settle()
    raise AssertionError("the pod is never deleted")


@pytest.mark.parametrize(("seconds", "want"), [(None, 30), (5.0, 30), (90.0, 150), (5000.0, 570)])
def test_a_pod_is_deleted_once_its_checkpoint_had_twice_its_time(seconds: float | None, want: float) -> None:
    assert deleted_after(running(saveSeconds=seconds)) == want


def test_the_admin_bounds_the_time() -> None:
    world = running(saveSeconds=5000.0)
    world.policy = world.policy.model_copy(update={"preemption": Preemption(max_checkpoint_seconds=100)})
    assert deleted_after(world) == 70


def test_a_checkpoint_slower_than_thirty_seconds_and_the_grace_period_is_written() -> None:
    """It was killed after 60 s, whatever it took before."""
    world = running(saveSeconds=80.0)
    world.revoke()
    world.settle()
    world.wait(85)
    world.settle()
    assert not any("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())
    world.exit("job-1-0", 75, json.dumps({"outcome": "yielded", "step": 41, "save_seconds": 84.0}))
    world.settle()
    last = books(world).last
    assert last is not None
    assert (last.outcome, last.step, last.save_seconds) == ("Yielded", 41, 84.0)


def killed(world: World) -> RunOutcome:
    """The run is killed at the end of its grace period and says nothing."""
    run = int(world.job["status"]["allocation"]["run"])
    deleted_after(world)
    world.wait(30)
    world.exit(f"job-{run}-0", 137)
    world.reap()
    world.settle()
    last = books(world).last
    assert last is not None
    return last


def books(world: World) -> ServiceStatus:
    assert world.status.service is not None
    return world.status.service


def test_each_run_that_is_killed_gives_the_next_twice_the_time() -> None:
    """A job whose first checkpoint is slow has never measured one."""
    world, waits = running(), []
    for run in range(2, 8):
        last = killed(world)
        waits.append(last.save_seconds)
        assert (last.outcome, books(world).failures) == ("Yielded", 0)
        world.grant()
        world.run_all()
        # the extender takes over what the ended run left
        kept = {"run": run, "steps": 40, "checkpointSteps": 20, "saveSeconds": last.save_seconds}
        world.job["status"]["progress"] = kept
    assert waits == [60, 120, 240, 480, 600, 600]
    assert world.status.phase == "Running", "however often, the job goes on"


def fail(world: World, after: float, checkpoint: int | None) -> ServiceStatus:
    """The newest run trains for some time, reports a checkpoint and fails; the next one runs."""
    run = int(world.job["status"]["allocation"]["run"])
    if checkpoint is not None:
        world.job["status"]["progress"] = {"run": run, "steps": checkpoint + 3, "checkpointSteps": checkpoint}
    world.wait(after)
    world.exit(f"job-{run}-0", 1)
    world.settle()
    world.reap()
    world.settle()
    found = books(world)
    world.wait(400)
    world.settle()
    if world.status.phase == "Queued":
        world.grant()
        world.run_all()
    return found


def begun(**more: Any) -> World:
    world = World(**more)
    world.settle()
    world.grant()
    world.run_all()
    return world


def test_failures_after_new_checkpoints_are_forgiven_and_still_told() -> None:
    world = begun(backoffLimit=2)
    counts = []
    for step in range(10, 70, 10):
        found = fail(world, HEALTHY_SECONDS, step)
        counts.append((found.failures, found.counted_failures))
    assert counts == [(n, 1) for n in range(1, 7)]
    assert world.status.phase == "Running"


@pytest.mark.parametrize(
    ("after", "checkpoint"),
    [(HEALTHY_SECONDS * 3, 20), (HEALTHY_SECONDS - 1, None), (UNREPORTED_SECONDS - 1, None), (5.0, 20)],
)
def test_failures_without_progress_count_to_the_limit(after: float, checkpoint: int | None) -> None:
    world = begun(backoffLimit=2)
    counts = [fail(world, after, checkpoint).counted_failures for _ in range(3)]
    assert counts == [1, 2, 3]
    assert world.status.phase == "Failed"
    assert world.reason("Finished") == "BackoffLimitExceeded"


def test_a_job_that_fails_soon_after_each_new_checkpoint_fails_for_good() -> None:
    world = begun(backoffLimit=1)
    assert [fail(world, 60.0, step).counted_failures for step in (10, 20)] == [1, 2]
    assert world.status.phase == "Failed"


def test_a_job_that_reports_nothing_is_forgiven_after_an_hour() -> None:
    world = begun(backoffLimit=1)
    assert [fail(world, UNREPORTED_SECONDS, None).counted_failures for _ in range(4)] == [1, 1, 1, 1]
    assert world.status.phase == "Running"


def years(world: World) -> None:
    """The job's template has a grace period of three years."""
    for pod in world.pods.values():
        pod["spec"]["terminationGracePeriodSeconds"] = 100_000_000


def deadlines(world: World) -> list[float]:
    """In how many seconds each pod has to be gone."""
    return [parse_time(pod["metadata"]["deletionTimestamp"]) - world.now for pod in world.pods.values()]


def test_no_grace_period_is_longer_than_the_admin_allows_for_a_checkpoint() -> None:
    world = running()
    years(world)
    deleted_after(world)
    assert deadlines(world) == [600]
    assert world.settle().todo == ()
