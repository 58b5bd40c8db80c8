"""Saves and starts, as a training script reports them."""

from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import Job


def test_saves_and_starts_are_reported_and_told_on_leaving(leased_job: Job, lease_server: LeaseServer) -> None:
    """A save of 0.3 s is made every tenth step; what the last one took stands in the termination message too."""
    lease_server.answer = lambda report: leave_in(0.0) if report["step"] >= 25 else go_on()
    code, _ = leased_job.run("--save-ms", "300", "--every-steps", "10", "--step-ms", "20")
    assert code == 75
    assert "save_seconds" not in lease_server.reports[0], "nothing is saved yet"
    assert 0.3 <= lease_server.reports[-1]["save_seconds"] < 5
    starts = {report["resume_seconds"] for report in lease_server.reports}
    assert len(starts) == 1, "measured once in a run"
    assert 0.0 < starts.pop() < 30
    assert 0.3 <= leased_job.termination()["save_seconds"] < 5
