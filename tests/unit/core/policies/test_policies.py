"""Who is ahead of whom."""

import pytest

from support.planner.planning import job, node, planned, saturating
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.snapshot import FieldError, Job
from synergy_core.policies import POLICIES
from synergy_core.policies.queue import Queue

SPEED = {"fast": 10.0, "slow": 1.0}


def _line(policy: str, *jobs: Job, now: float = 0.0, gpus: int = 8) -> tuple[str, ...]:
    queue = Queue(now=now, jobs=jobs, steps_per_s=lambda one: SPEED.get(one.name, 0.0), gpus=gpus)
    return POLICIES[policy](queue).names


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_ranks_every_job_once_and_breaks_ties_by_arrival_then_name(policy: str) -> None:
    jobs = [job("c", arrival_s=0), job("b", arrival_s=1), job("a", arrival_s=1)]
    assert _line(policy, *jobs) == ("c", "a", "b")
    assert _line(policy, *reversed(jobs)) == ("c", "a", "b")


def test_fifo_goes_by_arrival() -> None:
    assert _line("fifo", job("a", arrival_s=2), job("b", arrival_s=1, attained_gpu_s=9)) == ("b", "a")


def test_las_goes_by_attained_gpu_seconds() -> None:
    assert _line("las", job("a", attained_gpu_s=2), job("b", arrival_s=1, attained_gpu_s=1)) == ("b", "a")


def test_srtf_goes_by_the_time_that_the_remaining_steps_take() -> None:
    slow, fast = job("slow", steps_total=100, steps_done=50), job("fast", steps_total=1000, steps_done=600)
    assert _line("srtf", slow, fast) == ("fast", "slow")


def test_srtf_puts_jobs_of_unknown_length_last() -> None:
    jobs = [job("fast"), job("unknown", steps_total=10), job("slow", steps_total=10**9, arrival_s=5)]
    assert _line("srtf", *jobs) == ("slow", "fast", "unknown")


def test_srtf_counts_on_the_gpu_type_where_the_job_is_fastest() -> None:
    nodes = [node("k", gpu_type="K80"), node("v")]
    both = {"K80": saturating(3, 20, speed=1.0), "V100": saturating(3, 20, speed=10.0)}
    jobs = [
        job("both", 8, profiles=both, steps_total=500, arrival_s=1),
        job("k80", 8, profiles={"K80": both["K80"]}, gpu_types=("K80",), steps_total=100),
    ]
    result = planned(nodes[:1], jobs, policy="srtf")
    assert [a.job for a in result.allocations] == ["k80"]
    jobs_where_v100_is_there = planned([*nodes[:1], node("v", 8, schedulable=False)], jobs, policy="srtf")
    assert [a.job for a in jobs_where_v100_is_there.allocations] == ["both"]


class TestFinishTimeFairness:
    """The largest rho first: (age + remaining) / (all steps on the job's own part of the cluster)."""

    def test_of_two_jobs_that_waited_alike_the_shorter_one_is_treated_worse(self) -> None:
        jobs = [job("slow", steps_total=1000), job("fast", steps_total=1000)]
        assert _line("ftf", *jobs, now=100.0) == ("fast", "slow")

    def test_of_two_jobs_of_one_length_the_one_that_waited_longer_comes_first(self) -> None:
        jobs = [job("slow", steps_total=50, arrival_s=80), job("fast", steps_total=500, arrival_s=90)]
        assert _line("ftf", *jobs, now=100.0) == ("slow", "fast")

    def test_what_a_job_has_done_lets_others_pass(self) -> None:
        jobs = [job("slow", steps_total=100, steps_done=60), job("fast", steps_total=1000)]
        assert _line("ftf", *jobs, now=10.0) == ("fast", "slow")

    def test_a_job_that_asks_for_more_than_its_part_counts_as_slower_alone(self) -> None:
        """Two jobs on 8 GPUs: each one's own part is 4; the job of 8 GPUs would take twice as long there."""
        jobs = [job("slow", 8, steps_total=100), job("fast", 4, steps_total=1000)]
        assert _line("ftf", *jobs, now=100.0) == ("fast", "slow")
        assert _line("ftf", *jobs, now=100.0, gpus=16) == ("fast", "slow")
        assert _line("ftf", job("slow", 8, steps_total=100), job("fast", 4, steps_total=2000), now=100.0) == (
            "fast",
            "slow",
        )

    def test_a_job_of_unknown_length_that_never_ran_is_first_and_one_that_runs_all_the_time_is_not(self) -> None:
        jobs = [job("new", arrival_s=90), job("lucky", attained_gpu_s=100.0), job("slow", steps_total=100)]
        assert _line("ftf", *jobs, now=100.0) == ("new", "slow", "lucky")


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("policy", "lifo", f"'lifo' is not there; did you mean 'fifo'? choose one of {', '.join(sorted(POLICIES))}"),
        ("mechanism", "magic", f"'magic' is not there; choose one of {', '.join(sorted(MECHANISMS))}"),
        ("mode", "later", "'later' is not there; choose one of fill, round"),
        ("profile_gpu_percent", 101, "must be from 0 to 100, is 101"),
        ("demand_tolerance", 1.0, "must be at least 0 and below 1, is 1.0"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(field: str, value: object, problem: str) -> None:
    with pytest.raises(FieldError) as caught:
        planned([], [], **{field: value})
    assert (caught.value.path, caught.value.problem) == (field, problem)
