"""Frameworks that own the loop: preempted and resumed, with the losses and weights of a run that was left alone."""

from typing import Any

import pytest

from support.job.lease_server import LeaseServer, go_on, leave_in

from .conftest import Jobs

FRAMEWORKS = ["transformers", "lightning", "accelerate"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_preempted_job_is_the_job_that_was_left_alone(jobs: Jobs, lease_server: LeaseServer, framework: str) -> None:
    alone = jobs.of(framework, "alone")
    assert alone.run() == 0
    assert alone.termination["step"] == len(alone.losses) == 60
    preempted = jobs.of(framework, "preempted")
    leaves = iter([7, 19, 43])  # in the first, the second and the fourth epoch, of 12 steps each
    due = [next(leaves)]
    lease_server.answer = lambda report: leave_in(0) if due and report["step"] >= due[0] else go_on(0.05)
    codes = []
    for run in range(1, 5):
        codes.append(preempted.run("step_s=0.03", run=run))
        due[:] = [at for at in [next(leaves, None)] if at is not None]
    assert codes == [75, 75, 75, 0]
    assert preempted.losses == alone.losses
    assert preempted.weights == alone.weights
    assert preempted.termination["outcome"] == "finished"


@pytest.mark.parametrize("framework", ["transformers", "lightning"])
def test_a_trainer_that_ends_before_the_job_ends_it_early(
    jobs: Jobs, lease_server: LeaseServer, framework: str
) -> None:
    job = jobs.of(framework)
    assert job.run("steps=20", "evaluate=yes") == 0
    assert len(job.losses) == 20
    last = lease_server.reports[-1]
    assert (last["step"], last["checkpoint_step"], last["done"]) == (20, 20, True)
    assert last["ended_early"] == "the Trainer ended after step 20"
    assert last["epoch_steps"] == 12
    assert last["metrics"]["loss"] > 0
    assert last["paused_seconds"] > 0
    assert last["largest_tensor_bytes"] == 8 * 16 * 4


def test_early_stopping_of_the_trainer_counts_no_step_that_was_not_made(jobs: Jobs) -> None:
    job = jobs.of("transformers")
    assert job.run("early=yes") == 0
    assert job.termination["step"] == len(job.losses) == 20
    assert job.termination["ended_early"] == "the Trainer ended after step 20"


def test_the_recorded_checkpoint_is_there_until_the_next_one_is_recorded(jobs: Jobs) -> None:
    """A trainer that keeps one checkpoint removes the one before when it has written the next."""
    job = jobs.of("transformers")
    assert job.run("steps=30", "keep=1") == 0
    assert sorted(path.name for path in (job.folder / "out").glob("checkpoint-*")) == ["checkpoint-20", "checkpoint-30"]


def test_a_step_is_an_update_not_a_batch(jobs: Jobs) -> None:
    job = jobs.of("lightning")
    assert job.run("accumulate=3", SYNERGY_STEPS="10") == 0
    assert job.termination["step"] == 10
    assert len(job.losses) == 30


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_profile_run_trains_until_it_is_stopped(jobs: Jobs, framework: str, tmp_path: Any) -> None:
    """The trainer's own steps end it here; the harness would stop it before."""
    if framework == "accelerate":
        pytest.skip("its loop is the script's own: tests/integration/profiler")
    job = jobs.of(framework)
    listener = tmp_path / "steps.sock"
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(listener))
        receiver.setblocking(False)
        assert job.run("steps=5", SYNERGY_PROFILE_SOCKET=str(listener)) == 0
        assert b'"step": 4' in b"".join(receiver.recv(4096) for _ in range(5))
    assert not list((job.folder / "out").glob("*.pkl"))
