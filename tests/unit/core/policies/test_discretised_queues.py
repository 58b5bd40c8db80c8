"""Tiresias' queues: who stands where, who is promoted, what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import holding, job, node, planned, reasons
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import FieldError, Job
from synergy_core.policies import POLICIES
from synergy_core.policies.queue import Queue, Ranking

THREE = PriorityQueues(thresholds_gpu_s=(100.0, 1000.0))


def _ranking(policy: str, *jobs: Job, queues: PriorityQueues = THREE) -> Ranking:
    return POLICIES[policy](Queue(now=0.0, jobs=jobs, steps_per_s=lambda _: 1.0, gpus=8, queues=queues))


def _line(policy: str, *jobs: Job, queues: PriorityQueues = THREE) -> tuple[str, ...]:
    return _ranking(policy, *jobs, queues=queues).names


def test_jobs_stand_by_queue_and_within_a_queue_by_first_start() -> None:
    line = _line(
        "2d-las",
        job("third-queue", attained_gpu_s=1000, started_s=0),
        job("second-late", attained_gpu_s=100, started_s=9),
        job("second-early", attained_gpu_s=999, started_s=5),
        job("first-late", attained_gpu_s=1, started_s=20),
        job("first-early", attained_gpu_s=99, started_s=10),
    )
    assert line == ("first-early", "first-late", "second-early", "second-late", "third-queue")


def test_who_never_started_comes_after_those_of_the_first_queue_that_did() -> None:
    line = _line("2d-las", job("b", arrival_s=2), job("a", arrival_s=3), job("c", started_s=9, attained_gpu_s=5))
    assert line == ("c", "b", "a")


def test_service_is_gpus_times_time_so_a_wide_job_falls_sooner() -> None:
    wide, narrow = job("wide", 8, attained_gpu_s=8 * 20), job("narrow", 1, attained_gpu_s=20)
    assert _line("2d-las", wide, narrow) == ("narrow", "wide")


class TestPromotion:
    """delta >= PROMOTEKNOB * t (section 3.2.3)."""

    queues = PriorityQueues(thresholds_gpu_s=(100.0,), promote_knob=2.0)

    def _starving(self, **more: Any) -> Job:
        """Ran 200 s on 4 GPUs."""
        return job("starving", 4, **{"attained_gpu_s": 800.0, "waiting_s": 400.0, "started_s": 1.0, **more})

    def test_a_job_that_waited_long_enough_goes_to_the_first_queue_and_is_named(self) -> None:
        ranking = _ranking("2d-las", job("new", arrival_s=5), self._starving(), queues=self.queues)
        assert ranking.names == ("starving", "new")
        assert ranking.promoted == ("starving",)

    def test_a_moment_earlier_it_does_not(self) -> None:
        ranking = _ranking("2d-las", job("new"), self._starving(waiting_s=399.0), queues=self.queues)
        assert (ranking.names, ranking.promoted) == (("new", "starving"), ())

    def test_who_runs_does_not_starve(self) -> None:
        runs = self._starving(running=holding("starving", ("n", 4, 1, 1)))
        assert _ranking("2d-las", runs, queues=self.queues).promoted == ()

    def test_after_a_promotion_both_clocks_begin_anew(self) -> None:
        again = self._starving(promoted_gpu_s=750.0, promoted_waiting_s=390.0)
        ranking = _ranking("2d-las", job("new"), again, queues=self.queues)
        assert (ranking.names, ranking.promoted) == (("starving", "new"), ())
        fallen = self._starving(promoted_gpu_s=600.0, promoted_waiting_s=390.0)
        assert _line("2d-las", job("new"), fallen, queues=self.queues) == ("new", "starving")

    def test_one_that_never_ran_has_the_limit_of_one_that_used_up_the_first_queue(self) -> None:
        """Knob 2, 100 GPU-seconds, 4 GPUs: 50 s."""
        runs = job("runs", started_s=1.0, running=holding("runs", ("n", 1, 1, 1)))
        for policy, more in (("2d-las", {}), ("2d-gittins", {"service_gpu_s": (50.0, 60.0, 5000.0)})):
            queues = replace(self.queues, **more)
            late, starving = (job("wide", 4, arrival_s=2, waiting_s=waited) for waited in (49.9, 50.0))
            assert _ranking(policy, runs, late, queues=queues).names == ("runs", "wide")
            ranking = _ranking(policy, runs, starving, queues=queues)
            assert (ranking.names, ranking.promoted) == (("wide", "runs"), ("wide",))

    @pytest.mark.parametrize("policy", ["2d-las", "2d-gittins"])
    def test_it_stays_ahead_until_it_has_used_up_the_first_queue(self, policy: str) -> None:
        queues = replace(self.queues, service_gpu_s=(50.0, 60.0, 5000.0))
        early = job("early", attained_gpu_s=40, started_s=1.0)
        noted = job("wide", 4, arrival_s=2, waiting_s=60.0, promoted_waiting_s=50.0)
        waits = _ranking(policy, early, noted, queues=queues)
        assert (waits.names, waits.promoted) == (("wide", "early"), ())
        runs = replace(noted, started_s=9.0, attained_gpu_s=99.0)
        assert _line(policy, early, runs, queues=queues) == ("wide", "early")
        assert _line(policy, early, replace(runs, attained_gpu_s=100.0), queues=queues) == ("early", "wide")

    def test_among_promoted_ones_the_first_to_arrive_is_first(self) -> None:
        jobs = [
            job(name, arrival_s=arrival, started_s=started, promoted_waiting_s=5.0, waiting_s=5.0)
            for name, arrival, started in (("a", 3.0, None), ("b", 1.0, None), ("c", 2.0, 2.0))
        ]
        assert _line("2d-las", *jobs, job("d", started_s=0.5), queues=self.queues) == ("b", "c", "a", "d")

    def test_the_plan_names_them(self) -> None:
        result = planned([node("n", 4)], [self._starving()], policy="2d-las", queues=self.queues)
        assert result.promoted == ("starving",)


class TestGittins:
    def test_in_a_queue_the_likeliest_to_end_comes_first(self) -> None:
        queues = PriorityQueues(thresholds_gpu_s=(100.0,), service_gpu_s=(50.0, 60.0, 5000.0))
        begun = job("begun", attained_gpu_s=40, started_s=7)
        past = job("past", attained_gpu_s=70, started_s=1)
        assert _line("2d-gittins", past, job("new"), begun, queues=queues) == ("begun", "new", "past")

    def test_in_the_last_queue_the_first_start_decides(self) -> None:
        queues = PriorityQueues(thresholds_gpu_s=(100.0,), service_gpu_s=(500.0, 9000.0))
        jobs = [job("late", attained_gpu_s=499, started_s=7), job("early", attained_gpu_s=4000, started_s=1)]
        assert _line("2d-gittins", *jobs, queues=queues) == ("early", "late")

    def test_without_a_distribution_it_is_las(self) -> None:
        jobs = [job("a", attained_gpu_s=500, started_s=1), job("b", attained_gpu_s=5, started_s=2)]
        assert _line("2d-gittins", *jobs) == _line("2d-las", *jobs) == ("b", "a")

    def test_without_thresholds_it_is_not_discretised(self) -> None:
        queues = PriorityQueues(thresholds_gpu_s=(), service_gpu_s=(4.0, 8.0, 12.0))
        jobs = [job("a", attained_gpu_s=0), job("b", attained_gpu_s=2), job("c", attained_gpu_s=3)]
        assert _line("2d-gittins", *jobs, queues=queues) == ("c", "b", "a")
        assert _line("2d-las", *jobs, queues=queues) == ("a", "b", "c")


class TestWithoutPreemption:
    """YARN's capacity scheduler and best effort: who runs, runs to the end."""

    def _jobs(self) -> list[Job]:
        return [
            job("runs", 4, arrival_s=3, running=holding("runs", ("n", 4, 12, 250))),
            job("large", 8, arrival_s=1),
            job("small", 2, arrival_s=2),
        ]

    @pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy"])
    def test_nobody_passes_the_head_of_the_line(self, mechanism: str) -> None:
        result = planned([node("n")], self._jobs(), policy="yarn-cs", mechanism=mechanism)
        assert [one.job for one in result.allocations] == ["runs"]
        assert reasons(result) == {"large": "NoFreeGPU", "small": "HeadOfLine"}

    @pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy"])
    def test_best_effort_passes_it(self, mechanism: str) -> None:
        result = planned([node("n")], self._jobs(), policy="best-effort", mechanism=mechanism)
        assert [one.job for one in result.allocations] == ["runs", "small"]
        assert result.preempted == ()

    def test_what_never_fits_blocks_nobody(self) -> None:
        jobs = [job("huge", 64), job("small", 1, arrival_s=1)]
        result = planned([node("n")], jobs, policy="yarn-cs")
        assert [one.job for one in result.allocations] == ["small"]

    def test_between_rounds_nobody_passes_either(self) -> None:
        result = planned([node("n")], self._jobs(), policy="yarn-cs", mode="fill")
        assert reasons(result) == {"large": "NoFreeGPU", "small": "HeadOfLine"}

    @pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
    def test_where_pods_of_others_took_the_room_nothing_is_given_twice(self, mechanism: str) -> None:
        result = planned([node("n", gpus_used=6)], self._jobs(), policy="yarn-cs", mechanism=mechanism)
        assert sum(one.workers[0].gpus for one in result.allocations) <= 2
        assert result.preempted == ("runs",)

    def test_fifo_displaces(self) -> None:
        assert planned([node("n")], self._jobs(), policy="fifo").preempted == ("runs",)


def test_smallest_first_and_shortest_service_first() -> None:
    jobs = [job("wide", 4, steps_total=10), job("long", 1, steps_total=50), job("open", 2)]
    assert _line("sf", *jobs) == ("long", "open", "wide")
    assert _line("srsf", *jobs) == ("wide", "long", "open")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thresholds_gpu_s": (5.0, 5.0)}, "thresholds_gpu_s[1]: 5 is not above 5; sort the thresholds"),
        ({"thresholds_gpu_s": (0.0,)}, "thresholds_gpu_s[0]: must be above 0 and finite, is 0.0"),
        ({"service_gpu_s": (1.0, float("nan"))}, "service_gpu_s[1]: must be above 0 and finite, is nan"),
        ({"promote_knob": 0.0}, "promote_knob: must be above 0, is 0.0; leave it out to promote no job"),
    ],
)
def test_settings_without_sense_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as refused:
        PriorityQueues(**settings)
    assert str(refused.value) == message
