"""What is named after a job is a valid name, however long the job's is and however long it lives."""

import re

from hypothesis import given
from hypothesis import strategies as st

from synergy_api.names import MAX_JOB_NAME, service_name, worker_pod_name
from synergy_operator.profile.job import profile_job_name
from synergy_operator.views.batch_job import Target

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
JOBS = st.from_regex(rf"[a-z0-9]([-a-z0-9]{{0,{MAX_JOB_NAME - 2}}}[a-z0-9])?", fullmatch=True)


def fits(name: str) -> bool:
    """A label's value, a pod's host name, a Service's name: 63 characters."""
    return len(name) <= 63 and LABEL.fullmatch(name) is not None


@given(JOBS, st.integers(1, 9_999_999), st.integers(0, 4095))
def test_workers_and_service_have_names_that_fit(job: str, run: int, rank: int) -> None:
    assert fits(worker_pod_name(job, run, rank))
    assert fits(service_name(job))


@given(JOBS, st.integers(1, 9_999_999), st.integers(1, 9_999_999), st.integers(0, 1))
def test_profile_jobs_have_names_that_fit(job: str, run: int, cpu_millis: int, attempt: int) -> None:
    assert fits(profile_job_name(job, run, Target(cpu_millis, 0.1234, 5, 3), attempt))


@given(JOBS, JOBS, st.integers(1, 9_999_999), st.integers(1, 9_999_999))
def test_two_jobs_never_share_a_profile_job(one: str, other: str, run: int, cpu_millis: int) -> None:
    if one != other:
        assert profile_job_name(one, run, Target(cpu_millis), 0) != profile_job_name(other, run, Target(cpu_millis), 0)


def test_a_name_that_fits_is_left_as_it_is() -> None:
    assert profile_job_name("job", 3, Target(1500), 1) == "job-3-1500b"
    assert profile_job_name("job", 3, Target(1500, repeat=2), 0) == "job-3-1500r2"
    assert profile_job_name("job", 3, Target(1500, 0.25, 100), 0) == "job-3-1500h2500"
    assert profile_job_name("job", 3, Target(1500, 0.0), 1) == "job-3-1500c0b"
