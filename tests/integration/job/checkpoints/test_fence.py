"""A training script that hears nobody, or is refused, and its checkpoints."""

import time
from unittest.mock import ANY

from support.job.lease_server import LeaseServer, go_on
from support.job.process import Job

UNSAVED = {
    "outcome": "yielded",
    "step": 0,
    "checkpoint_step": 0,
    "unsaved": "the extender refuses this pod's lease",
}


def test_a_script_that_hears_nobody_saves_in_time_and_yields(leased_job: Job, lease_server: LeaseServer) -> None:
    answers = [go_on(0.2)] * 3
    lease_server.answer = lambda report: answers.pop() if answers else (503, b"away")
    begun = time.monotonic()
    code, output = leased_job.run("--step-ms", "20", SYNERGY_STEPS="100000", SYNERGY_FENCE_SECONDS="10")
    lasted = time.monotonic() - begun
    assert code == 75, output
    assert 7.0 <= lasted < 25.0
    told = leased_job.termination()
    assert told["outcome"] == "yielded"
    assert told["step"] == told["checkpoint_step"] == len(leased_job.trained())
    assert "unsaved" not in told
    assert len(leased_job.trained()) >= len(leased_job.bodies()) - 1


def test_a_script_that_is_refused_leaves_without_another_checkpoint(leased_job: Job, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (401, b"the token is not valid")
    code, output = leased_job.run(
        "--step-ms", "20", "--every-steps", "10", SYNERGY_STEPS="100000", SYNERGY_FENCE_SECONDS="10"
    )
    assert code == 75, output
    assert "is not saved" in output
    assert leased_job.termination() == UNSAVED
    assert not (leased_job.folder / "saves-0").exists()


def test_a_script_that_may_not_write_its_last_checkpoint_is_not_done(
    leased_job: Job, lease_server: LeaseServer
) -> None:
    """The next run trains again what no checkpoint has."""
    lease_server.answer = lambda report: (401, b"the token is not valid")
    code, output = leased_job.run("--step-ms", "100", SYNERGY_STEPS="20", SYNERGY_FENCE_SECONDS="30")
    assert code == 75, output
    assert "step 20 is not saved" in output
    assert leased_job.termination() == UNSAVED
    lease_server.answer = lambda report: go_on(0.2)
    code, output = leased_job.run(SYNERGY_STEPS="20", SYNERGY_FENCE_SECONDS="30", SYNERGY_RUN="2")
    assert code == 0, output
    assert leased_job.termination() == {"outcome": "finished", "step": 20, "checkpoint_step": 20, "save_seconds": ANY}
