"""Frameworks that own the loop: preempted and resumed, with the losses and weights of a run that was left alone."""

import os
import subprocess
from typing import Any

import pytest

from support.job import debian_torch
from support.job.lease_server import LeaseServer, go_on, leave_in

from .conftest import Jobs, Trained

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


@pytest.mark.parametrize(("framework", "option"), [*((one, "") for one in FRAMEWORKS), ("lightning", "sampler=hidden")])
def test_two_processes_share_each_epoch_also_where_they_are_preempted(
    jobs: Jobs, lease_server: LeaseServer, framework: str, option: str
) -> None:
    options = ["seeds=own", *([option] if option else [])]
    jobs.environ["SYNERGY_STEPS"] = "18"  # three epochs of 96 samples, in two batches of 8 a step
    alone = jobs.of(framework, "alone")
    assert alone.run_of_two(*options) == [0, 0]
    for epoch in (slice(0, 6), slice(6, 12), slice(12, 18)):
        seen = [sample for rank in (0, 1) for step in alone.steps_of(rank)[epoch] for sample in step["samples"]]
        assert sorted(seen) == list(range(96))
    orders = [[step["samples"] for step in alone.steps_of(0)[begin : begin + 6]] for begin in (0, 6, 12)]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert_the_same_when_preempted(alone, jobs.of(framework, "preempted"), lease_server, *options)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_pods_of_one_gpu_need_no_torchrun(jobs: Jobs, framework: str) -> None:
    jobs.environ["SYNERGY_STEPS"] = "6"
    job = jobs.of(framework)
    assert job.run_of_two_pods() == [0, 0]
    seen = [sample for rank in (0, 1) for step in job.steps_of(rank) for sample in step["samples"]]
    assert sorted(seen) == list(range(96))


def assert_the_same_when_preempted(
    alone: Trained, preempted: Trained, lease_server: LeaseServer, *options: str
) -> None:
    """Two processes that are preempted in the first and in the second epoch."""
    leaves = iter([2, 15 if "sampler=none" in options else 9])
    due = [next(leaves)]
    lease_server.answer = lambda report: leave_in(0) if due and report["step"] >= due[0] else go_on(0.05)
    for run in (1, 2, 3):
        code = 75 if due else 0
        assert preempted.run_of_two(*options, "step_s=0.1", run=run) == [code, code]
        due[:] = [at for at in [next(leaves, None)] if at is not None]
    assert [preempted.steps_of(rank) for rank in (0, 1)] == [alone.steps_of(rank) for rank in (0, 1)]
    assert preempted.weights == alone.weights


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_processes_go_on_from_the_checkpoint_of_one(jobs: Jobs, lease_server: LeaseServer, framework: str) -> None:
    """Nobody saved random numbers for the second one."""
    jobs.environ["SYNERGY_STEPS"] = "18"
    job = jobs.of(framework)
    lease_server.answer = lambda report: leave_in(0) if report["step"] >= 3 else go_on(0.05)
    assert job.run("step_s=0.05") == 75
    left = len(job.losses)
    lease_server.answer = lambda report: go_on(0.05)
    assert job.run_of_two(run=2) == [0, 0]
    assert (len(job.steps_of(0)), len(job.steps_of(1))) == (18, 18 - left)
    assert job.termination["step"] == 18
    first, second = (job.steps_of(rank)[-1]["samples"] for rank in (0, 1))
    assert not {*first} & {*second}


def test_a_distributed_sampler_of_the_user_is_kept(jobs: Jobs, lease_server: LeaseServer) -> None:
    jobs.environ["SYNERGY_STEPS"] = "18"
    alone = jobs.of("lightning", "alone")
    assert alone.run_of_two("sampler=own") == [0, 0]
    for rank in (0, 1):
        seen = [sample - 48 * rank for step in alone.steps_of(rank) for sample in step["samples"]]
        assert seen == [(epoch * 8 + place) % 48 for epoch in range(3) for place in range(48)]
    assert_the_same_when_preempted(alone, jobs.of("lightning", "preempted"), lease_server, "sampler=own")


def test_each_process_shuffles_all_data_by_itself_where_lightning_is_told_to_leave_it(
    jobs: Jobs, lease_server: LeaseServer
) -> None:
    jobs.environ["SYNERGY_STEPS"] = "24"
    alone = jobs.of("lightning", "alone")
    assert alone.run_of_two("sampler=none", "seeds=own") == [0, 0]
    orders = [[sample for step in alone.steps_of(rank)[:12] for sample in step["samples"]] for rank in (0, 1)]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(96))
    assert orders[0] != orders[1]
    preempted = jobs.of("lightning", "preempted")
    assert_the_same_when_preempted(alone, preempted, lease_server, "sampler=none", "seeds=own")


@pytest.mark.parametrize(
    ("framework", "option", "file"),
    [
        ("accelerate", "every=3", "random_states_1.pkl"),
        ("transformers", "every=3", "rng_state_1.pth"),
        ("transformers", "keep=3", "rng_state_1.pth"),
    ],
)
def test_a_checkpoint_counts_once_every_process_has_written_its_files(
    jobs: Jobs, framework: str, option: str, file: str
) -> None:
    jobs.environ["SYNERGY_STEPS"] = "12"
    job = jobs.of(framework)
    assert job.run_of_two("slow=yes", option) == [0, 0]
    assert file in (job.folder / "recorded").read_text().split()


SEEING_ONE = {
    "accelerate": "State(SimpleNamespace(num_processes=1), None).iterate([])",
    "lightning": "JobCallback('.').setup(SimpleNamespace(world_size=1), None, 'fit')",
    "transformers": "train(SimpleNamespace(args=SimpleNamespace(world_size=1)))",
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_that_does_not_see_all_processes_is_refused(jobs: Jobs, framework: str) -> None:
    code = f"from synergy_job.integrations.{framework} import *\n{SEEING_ONE[framework]}"
    refused(jobs, code, "the job has 2 processes, but the framework trains with 1: give ", WORLD_SIZE="2")


@pytest.mark.parametrize(
    ("options", "change", "told"),
    [
        ("dispatch_batches=True", "", "dispatch_batches=True reads all batches in one process"),
        ("", "here.Together.gathered = lambda _, value: [value, value + 1]", "an epoch has 3 batches in some"),
    ],
)
def test_loaders_of_accelerate_that_cannot_be_resumed_are_refused(
    jobs: Jobs, options: str, change: str, told: str
) -> None:
    code = f"""
import accelerate, torch
import synergy_job.integrations.accelerate as here
{change}
accelerator = accelerate.Accelerator(cpu=True, {options})
loader = accelerator.prepare(torch.utils.data.DataLoader(torch.zeros(12), 4))
here.state(accelerator, ".").iterate(loader)
"""
    refused(jobs, code, told)


def test_a_lightning_that_shares_data_in_another_way_is_refused(jobs: Jobs) -> None:
    code = """
import torch
from synergy_job.integrations.lightning import JobCallback
job = JobCallback(".")
job.setup(SimpleNamespace(world_size=2), None, "fit")
len(job.loader(torch.utils.data.DataLoader(torch.zeros(12), 4)))
"""
    refused(jobs, code, "give trainer.fit the loader itself, with a DistributedSampler", WORLD_SIZE="2")


def refused(jobs: Jobs, code: str, told: str, **environ: str) -> None:
    """The script ends with a ValueError that says so."""
    done = subprocess.run(
        [debian_torch.PYTHON, "-c", f"from types import SimpleNamespace\n{code}"],
        env={**os.environ, **jobs.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1].startswith("ValueError"), done.stderr
    assert told in done.stderr


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


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_worker_writes_nothing_where_a_newer_run_has_the_folder(jobs: Jobs, framework: str) -> None:
    job = jobs.of(framework)
    assert job.run("every=10", "taken=5") == 75
    assert (len(job.losses), job.termination["checkpoint_step"]) == (10, 0)
    assert [path.name for path in (job.folder / "out").iterdir()] == [".synergy_job.pkl.versions"]


@pytest.mark.parametrize("options", [["every=10"], ["keep=3", "steps=20"]])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_process_saves_where_rank_0_finds_a_newer_run(jobs: Jobs, framework: str, options: list[str]) -> None:
    job = jobs.of(framework)
    assert job.run_of_two("taken=9", "late=yes", *options) == [75, 75]
    assert [path.name for path in (job.folder / "out").iterdir()] == [".synergy_job.pkl.versions"]


@pytest.mark.parametrize("options", [["keep=3"], ["epochs=yes"]])
def test_the_trainers_own_checkpoints_are_left_out_where_a_newer_run_has_the_folder(
    jobs: Jobs, options: list[str]
) -> None:
    job = jobs.of("transformers")
    assert job.run("steps=24", "taken=5", *options) == 75
    assert len(job.losses) == 24
    assert [path.name for path in (job.folder / "out").iterdir()] == [".synergy_job.pkl.versions"]


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
