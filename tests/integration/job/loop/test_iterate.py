"""Runs of a one-process job: real processes, real signals, real exit codes."""

import json
import os
import re
import signal
import time
from unittest.mock import ANY

import pytest

from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import Job, free_port, wait_until

WHOLE = [100 * epoch + number for epoch in range(6) for number in range(7)][:40]
"""The batches of the job's 40 steps: epochs of seven."""


def test_a_run_without_interruption(leased_job: Job, lease_server: LeaseServer) -> None:
    code, output = leased_job.run()
    assert (code, output) == (0, "trained 40\n")
    assert leased_job.trained() == WHOLE
    assert leased_job.termination() == {"outcome": "finished", "step": 40, "checkpoint_step": 40, "save_seconds": ANY}
    last = lease_server.reports[-1]
    assert (last["step"], last["checkpoint_step"], last["done"]) == (40, 40, True)
    assert last["gpu_uuids"] == ["GPU-1234"]
    assert last["steps_per_second"] > 20
    assert [report["done"] for report in lease_server.reports[:-1]] == [False] * (len(lease_server.reports) - 1)


def test_a_lease_that_is_not_renewed(leased_job: Job, lease_server: LeaseServer) -> None:
    """The job trains on until the moment named, saves, exits 75, and the next run does the rest, no step more."""
    lease_server.answer = lambda report: leave_in(0.5) if report["step"] >= 5 else go_on()
    code, output = leased_job.run("--step-ms", "80")
    left = time.monotonic()
    assert code == 75
    assert "mnist run 1 leaves after step" in output
    said = lease_server.moments[-1]
    assert 0.5 <= left - said < 10
    step = leased_job.termination()["step"]
    left_at = {"outcome": "yielded", "step": step, "checkpoint_step": step, "save_seconds": ANY}
    assert leased_job.termination() == left_at
    assert lease_server.reports[-1]["step"] + 3 <= step < 40
    assert leased_job.trained() == WHOLE[:step]
    assert (leased_job.folder / "finally-0").exists()
    assert (leased_job.folder / "atexit-0").exists()

    lease_server.answer = lambda report: go_on()
    code, output = leased_job.run(SYNERGY_RUN="2")
    assert code == 0
    assert f"mnist run 2 resumes at step {step} of 40" in output
    assert leased_job.trained() == WHOLE
    assert leased_job.bodies() == list(range(1, 41))
    assert lease_server.reports[-1]["done"] is True


def test_a_pod_of_an_old_run_leaves_at_once(leased_job: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: leave_in(0)
    code, _ = leased_job.run("--step-ms", "100")
    assert code == 75
    assert leased_job.termination()["step"] <= 2


def test_many_short_runs_make_exactly_the_steps(leased_job: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: leave_in(0.05)
    codes = []
    for run in range(1, 40):
        code, output = leased_job.run("--step-ms", "10", SYNERGY_RUN=str(run))
        codes.append(code)
        assert code in {0, 75}, output
        if code == 0:
            break
    assert codes[-1] == 0
    assert len(codes) > 2
    assert leased_job.trained() == WHOLE
    assert leased_job.bodies() == list(range(1, 41))


def test_sigterm_means_checkpoint_and_leave(job: Job) -> None:
    process = job.start("--step-ms", "30")
    job.wait_for_body(4)
    process.send_signal(signal.SIGTERM)
    code, _ = job.end(process)
    assert code == 75
    step = job.termination()["step"]
    assert 4 <= step <= 8
    assert job.trained() == WHOLE[:step]
    assert len(job.bodies()) == step
    assert (job.folder / "finally-0").exists()


def test_sigterm_while_waiting_for_data(job: Job) -> None:
    """The batch that comes after the signal is not trained on."""
    process = job.start("--slow-batch", "3")
    wait_until((job.folder / "waiting").exists, "the wait for the fourth batch")
    process.send_signal(signal.SIGTERM)
    (job.folder / "go").touch()
    assert job.end(process)[0] == 75
    assert job.bodies() == [1, 2, 3]
    assert job.trained() == [0, 1, 2]


def test_sigterm_while_saving_does_not_spoil_the_checkpoint(job: Job) -> None:
    process = job.start("--save-ms", "400", "--every-steps", "5")
    job.wait_for_body(5)
    process.send_signal(signal.SIGTERM)
    code, _ = job.end(process)
    assert code == 75
    assert job.termination() == {"outcome": "yielded", "step": 5, "checkpoint_step": 5, "save_seconds": ANY}
    assert job.termination()["save_seconds"] >= 0.4
    assert (job.folder / "saves-0").read_text() == "5\n"


def test_sigterm_still_ends_the_processes_that_a_loader_forks(job: Job) -> None:
    process = job.start("--helper", "--step-ms", "30")
    job.wait_for_body(3)
    process.send_signal(signal.SIGTERM)
    code, output = job.end(process)
    assert code == 75
    assert f"helper ended with {-signal.SIGTERM}" in output


def test_a_job_trains_on_without_its_control_plane(leased_job: Job) -> None:
    leased_job.environ["SYNERGY_EXTENDER_URL"] = f"https://127.0.0.1:{free_port()}"
    begun = time.monotonic()
    code, output = leased_job.run()
    assert code == 0
    assert leased_job.trained() == WHOLE
    assert output.count("lease not renewed, training goes on") == 1
    assert time.monotonic() - begun < 20


def test_the_control_plane_comes_back(leased_job: Job, lease_server: LeaseServer) -> None:
    answers = iter([(503, b"starting"), (503, b"starting")])
    lease_server.answer = lambda report: next(answers, None) or leave_in(0)
    code, output = leased_job.run("--step-ms", "20", SYNERGY_STEPS="2000")
    assert code == 75
    assert "lease reports get through again after 2 failures" in output


def test_periodic_checkpoints_by_steps(job: Job) -> None:
    assert job.run("--every-steps", "15")[0] == 0
    assert (job.folder / "saves-0").read_text().split() == ["15", "30", "40"]


def test_periodic_checkpoints_by_time(job: Job) -> None:
    assert job.run("--every-seconds", "0.3", "--step-ms", "50")[0] == 0
    saves = [int(line) for line in (job.folder / "saves-0").read_text().split()]
    assert saves[-1] == 40
    gaps = [after - before for before, after in zip([0, *saves], saves, strict=False)]
    assert len(saves) >= 4
    assert max(gaps) <= 8


def test_a_crash_costs_the_steps_since_the_last_checkpoint_and_no_more(job: Job) -> None:
    code, output = job.run("--every-steps", "10", "--crash-at", "25")
    assert code == 1
    assert "ValueError: bad batch" in output
    assert not (job.folder / "termination-0").exists()
    code, _ = job.run(SYNERGY_RUN="2")
    assert code == 0
    assert job.trained() == WHOLE
    assert job.bodies() == [*range(1, 25), *range(21, 41)]


def test_a_killed_process_resumes_at_its_last_checkpoint(job: Job) -> None:
    assert job.run("--every-steps", "10", "--die-at", "35")[0] == -signal.SIGKILL
    assert job.run(SYNERGY_RUN="2")[0] == 0
    assert job.trained() == WHOLE


def test_a_finished_job_does_not_train_again(leased_job: Job, lease_server: LeaseServer) -> None:
    assert leased_job.run()[0] == 0
    code, output = leased_job.run(SYNERGY_RUN="2")
    assert code == 0
    assert "resumes at step 40 of 40" in output
    assert len(leased_job.bodies()) == 40
    assert lease_server.reports[-1]["done"] is True


def test_a_loop_that_is_broken_off_ends_quietly(leased_job: Job) -> None:
    code, output = leased_job.run("--break-at", "10", "--helper")
    assert code == 0
    assert f"helper ended with {-signal.SIGTERM}" in output
    assert not (leased_job.folder / "termination-0").exists()


def test_a_save_that_fails_fails_the_run(job: Job) -> None:
    process = job.start("--save-fails", "--step-ms", "30")
    job.wait_for_body(2)
    process.send_signal(signal.SIGTERM)
    code, output = job.end(process)
    assert code == 1
    assert "OSError: disk full" in output
    told = json.loads((job.folder / "termination-0").read_text())
    kept = {"step": 0, "checkpoint_step": 0, "trained_seconds": 0.0}
    assert told == {"outcome": "failed", "function": "save", "error": "OSError: disk full", **kept}


def test_without_save_and_load_progress_is_lost_with_a_warning(job: Job) -> None:
    process = job.start("--no-checkpoint", "--step-ms", "30")
    job.wait_for_body(3)
    process.send_signal(signal.SIGTERM)
    code, output = job.end(process)
    assert code == 75
    assert "given no save and load: when the job must leave, its progress is lost" in output
    assert job.termination() == {"outcome": "yielded", "step": 0, "checkpoint_step": 0}


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ("41", "load() returned step 41 but the job has 40 steps"),
        ("-1", "load() returned -1: it must return the step that save() was given"),
        ('"7"', "load() returned '7': it must return the step that save() was given"),
        ("true", "load() returned True: it must return the step that save() was given"),
    ],
)
def test_a_load_that_makes_no_sense_fails_the_run(job: Job, returned: str, says: str) -> None:
    code, output = job.run("--load-returns", returned)
    assert code == 1
    assert f"CheckpointError: {says}" in output
    told = json.loads((job.folder / "termination-0").read_text())
    assert told["function"] == "load"
    assert says in told["error"]
    assert not (job.folder / "bodies-0").exists()


def test_a_termination_log_that_cannot_be_written_is_only_warned_of(job: Job) -> None:
    code, output = job.run(SYNERGY_TERMINATION_LOG="/nowhere/termination-log")
    assert code == 0
    assert re.search("cannot write the termination message to /nowhere/termination-log", output)


def test_a_wrong_environment_fails_before_training(job: Job) -> None:
    code, output = job.run(SYNERGY_STEPS="soon")
    assert code == 1
    assert "ConfigError: SYNERGY_STEPS is 'soon': it must be a whole number" in output


def test_a_loop_outside_the_main_thread_cannot_take_sigterm(job: Job) -> None:
    script = (
        "import threading, synergy_job\n"
        "seen = []\n"
        "thread = threading.Thread(target=lambda: seen.extend(synergy_job.iterate([1, 2])))\n"
        "thread.start(); thread.join(); print(len(seen))\n"
    )
    job.script = job.folder / "script.py"
    job.script.write_text(script)
    code, output = job.run()
    assert code == 0
    assert "SIGTERM will end the job without a checkpoint" in output
    assert output.endswith("40\n")


def test_the_handler_of_sigterm_is_given_back(job: Job) -> None:
    job.script = job.folder / "script.py"
    job.script.write_text(
        "import os, signal, time, synergy_job\n"
        "for _ in synergy_job.iterate([1]): pass\n"
        "open(os.environ['SYNERGY_TERMINATION_LOG'] + '-ready', 'w').close()\n"
        "time.sleep(60)\n"
    )
    process = job.start()
    ready = job.folder / "termination-0-ready"
    wait_until(ready.exists, "the end of the loop")
    os.kill(process.pid, signal.SIGTERM)
    assert job.end(process)[0] == -signal.SIGTERM
