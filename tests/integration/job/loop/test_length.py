"""When training ends: by epochs, by time, or because the script says so; and what of its time is training."""

import random
from unittest.mock import ANY

import pytest

from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import Job

RANKS = range(3)


def by(job: Job, **length: int) -> Job:
    """The job with another length than a number of steps."""
    del job.environ["SYNERGY_STEPS"]
    job.environ.update({f"SYNERGY_{name}": str(value) for name, value in length.items()})
    return job


@pytest.mark.parametrize("loader", [(), ("--no-len",)])
def test_a_job_of_epochs_ends_with_the_last_one(leased_job: Job, lease_server: LeaseServer, loader: list[str]) -> None:
    code, output = by(leased_job, EPOCHS=3).run(*loader)
    assert code == 0, output
    assert leased_job.trained() == [100 * epoch + number for epoch in range(3) for number in range(7)]
    assert leased_job.termination() == {"outcome": "finished", "step": 21, "checkpoint_step": 21, "save_seconds": ANY}
    assert lease_server.reports[-1]["epoch_steps"] == 7
    assert "ended_early" not in lease_server.reports[-1]


def test_one_epoch_of_an_iterator_that_ends(job: Job) -> None:
    code, output = by(job, EPOCHS=1).run("--once")
    assert code == 0, output
    assert job.trained() == list(range(7))


@pytest.mark.parametrize("loader", [(), ("--no-len",)])
def test_epochs_are_counted_over_all_runs(leased_job: Job, lease_server: LeaseServer, loader: list[str]) -> None:
    lease_server.answer = lambda report: leave_in(random.uniform(0, 0.2)) if report["step"] else go_on()
    by(leased_job, EPOCHS=4)
    for run in range(1, 30):
        code, output = leased_job.run("--step-ms", "40", *loader, SYNERGY_RUN=str(run))
        assert code in (0, 75), output
        if code == 0:
            break
    assert run > 1
    assert leased_job.bodies() == list(range(1, 29))


def test_a_gang_of_epochs_ends_after_the_same_step(gang: Job) -> None:
    by(gang, EPOCHS=2)
    processes = [gang.start("--shared", "--jitter-ms", "10", rank=rank) for rank in RANKS]
    assert [gang.end(process)[0] for process in processes] == [0, 0, 0]
    assert [len(gang.bodies(rank)) for rank in RANKS] == [14] * 3


def test_a_gang_of_epochs_needs_a_loader_that_knows_its_length(gang: Job) -> None:
    code, output = by(gang, EPOCHS=2).run("--no-len")
    assert code == 1
    assert "LoaderError: spec.epochs with several processes needs a loader that has len()" in output


def test_a_job_that_ends_by_time_saves_and_is_done(leased_job: Job, lease_server: LeaseServer) -> None:
    code, output = by(leased_job, MAX_RUN_SECONDS=1).run("--step-ms", "20")
    assert code == 0, output
    step = leased_job.termination()["step"]
    assert leased_job.termination() == {
        "outcome": "finished",
        "step": step,
        "checkpoint_step": step,
        "save_seconds": ANY,
    }
    assert leased_job.trained_seconds() >= 1.0
    assert 5 < step <= 50
    assert lease_server.reports[-1]["done"]


def test_the_time_of_earlier_runs_counts(job: Job) -> None:
    (job.folder / "state-0.json").write_text('{"step": 3, "batches": [0, 1, 2]}')
    code, _ = by(job, MAX_RUN_SECONDS=100, TRAINED_SECONDS=100).run()
    assert code == 0
    assert not (job.folder / "bodies-0").exists()
    assert job.trained_seconds() >= 100


def test_a_job_whose_time_is_over_without_a_checkpoint_has_not_succeeded(job: Job) -> None:
    code, output = by(job, MAX_RUN_SECONDS=100, TRAINED_SECONDS=100).run()
    assert code == 1
    says = "CheckpointError: the job has trained for 100 s, all that spec.maxRunSeconds gives, and load() finds no"
    assert says in output
    assert says in job.termination()["error"]


def test_time_that_is_in_no_checkpoint_is_trained_again(leased_job: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (401, b"the token is not valid")
    code, output = by(leased_job, MAX_RUN_SECONDS=1).run("--step-ms", "20")
    assert code == 75, output
    assert leased_job.trained_seconds() == 0.0
    why = "the extender refuses this pod's lease"
    assert leased_job.termination() == {"outcome": "yielded", "step": 0, "checkpoint_step": 0, "unsaved": why}


def test_rank_0_ends_a_gang_by_time(gang: Job) -> None:
    by(gang, MAX_RUN_SECONDS=1)
    processes = [gang.start("--step-ms", "20", "--jitter-ms", "20", rank=rank) for rank in RANKS]
    assert [gang.end(process)[0] for process in processes] == [0, 0, 0]
    assert len({gang.termination(rank)["step"] for rank in RANKS}) == 1
    assert {gang.termination(rank)["outcome"] for rank in RANKS} == {"finished"}


def test_finish_ends_training_early_with_a_checkpoint(leased_job: Job, lease_server: LeaseServer) -> None:
    code, output = leased_job.run("--finish-at", "5")
    assert code == 0, output
    assert len(leased_job.trained()) == 5
    assert leased_job.termination()["ended_early"] == "the loss is low enough"
    assert leased_job.termination()["outcome"] == "finished"
    last = lease_server.reports[-1]
    assert (last["done"], last["step"], last["ended_early"]) == (True, 5, "the loss is low enough")
    assert "mnist ends early after step 5: the loss is low enough" in output


@pytest.mark.parametrize("rank", RANKS)
def test_finish_of_one_process_ends_the_whole_gang(gang: Job, rank: int) -> None:
    arguments = ("--finish-at", "6", "--finish-rank", str(rank), "--step-ms", "5", "--jitter-ms", "20")
    processes = [gang.start(*arguments, rank=each) for each in RANKS]
    assert [gang.end(process)[0] for process in processes] == [0, 0, 0]
    steps = {gang.termination(each)["step"] for each in RANKS}
    assert len(steps) == 1
    assert 6 <= steps.pop() <= 9
    assert {gang.termination(each)["ended_early"] for each in RANKS} == {"the loss is low enough"}
    assert len(gang.trained()) == len(gang.bodies(2))


def test_finish_in_the_last_steps_before_leaving_is_not_forgotten(gang: Job) -> None:
    """The gang has agreed on its last step when a process says that training is over."""
    processes = [gang.start("--step-ms", "300", "--finish-at", "4", "--finish-rank", "1", rank=rank) for rank in RANKS]
    gang.wait_for_body(3, rank=1)
    processes[0].send_signal(15)
    assert [gang.end(process)[0] for process in processes] == [0, 0, 0]
    assert {gang.termination(rank)["outcome"] for rank in RANKS} == {"finished"}


def test_evaluations_and_saves_are_no_slow_steps(leased_job: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda _: go_on(0.2)
    code, output = leased_job.run("--step-ms", "20", "--pause-ms", "200", "--every-steps", "4", "--save-ms", "100")
    assert code == 0, output
    last = lease_server.reports[-1]
    assert 25 < last["steps_per_second"] <= 50  # a step takes 20 ms; with the pauses it would be 11 steps/s
    assert 2.3 < last["paused_seconds"] < last["trained_seconds"] < 8  # 8 evaluations, 10 saves


def test_metrics_are_reported_as_they_are_now(leased_job: Job, lease_server: LeaseServer) -> None:
    code, output = leased_job.run("--reports", "--step-ms", "10")
    assert code == 0, output
    assert lease_server.reports[-1]["metrics"] == {"loss": 1 / 40, "lr": 0.1}
    assert "report: lr is nan; it is left out until it is a finite number" in output
