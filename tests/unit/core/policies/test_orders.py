"""The ordering policies on jobs whose place a short sum tells, and the queue that they see."""

from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import GIB, holding, job, node, planned
from synergy_core import policies
from synergy_core.model.answer import Plan
from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import Job, Profile
from synergy_core.policies import BUILT_IN, POLICIES, register
from synergy_core.policies.queue import Queue, Ranking, ranked


def _queue(*jobs: Job, speed: float = 1.0, now: float = 100.0, gpus: int = 4, **more: Any) -> Queue:
    speeds = more.pop("speeds_of", {})
    return Queue(now, jobs, lambda one: speeds.get(one.name, speed), gpus=gpus, **more)


def _order(policy: str, queue: Queue) -> str:
    return "".join(POLICIES[policy](queue).names)


def test_remaining_time_is_the_remaining_steps_at_the_jobs_speed() -> None:
    queue = _queue(speeds_of={"slow": 0.5, "still": 0.0})
    assert queue.remaining_s(job("slow", steps_total=100, steps_done=20)) == 160.0
    assert queue.remaining_s(job("done", steps_total=100, steps_done=120)) == 0.0
    assert queue.remaining_s(job("open")) is None
    assert queue.remaining_s(job("still", steps_total=100)) is None


def test_jobs_of_equal_rank_stand_by_arrival_then_by_name() -> None:
    jobs = (job("b", arrival_s=1.0), job("c"), job("a", arrival_s=1.0))
    assert ranked(_queue(*jobs), lambda _: 0).names == ("c", "a", "b")


def test_shortest_remaining_service_counts_gpus_and_shortest_remaining_time_does_not() -> None:
    """90 s on four GPUs, 100 s on one, 80 s on five; the last has no end."""
    jobs = (
        job("d", 1),
        job("a", 4, steps_total=100, steps_done=10),
        job("b", 1, steps_total=100),
        job("c", 5, steps_total=80),
    )
    assert _order("srsf", _queue(*jobs)) == "bacd"
    assert _order("srtf", _queue(*jobs)) == "cabd"
    assert _order("sf", _queue(*jobs)) == "bdac"


def test_pauses_make_a_job_longer_and_not_more_unfairly_treated() -> None:
    """Its time alone has the same pauses: what a job says of them moves no other one back."""
    old, paused = job("old", steps_total=100, arrival_s=50.0), job("paused", steps_total=100, arrival_s=60.0)
    assert POLICIES["ftf"](_queue(old, paused, gpus=4)).names == ("old", "paused")
    assert POLICIES["ftf"](_queue(old, replace(paused, pause_share=0.9), gpus=4)).names == ("old", "paused")


def test_least_attained_service_first() -> None:
    jobs = (job("a", attained_gpu_s=5.0), job("b"), job("c", attained_gpu_s=4.0))
    assert _order("las", _queue(*jobs)) == "bca"
    undivided = PriorityQueues(thresholds_gpu_s=())
    assert _order("2d-las", _queue(*jobs, queues=undivided)) == "bca"
    assert _order("2d-las", _queue(*jobs, queues=PriorityQueues(thresholds_gpu_s=(4.5,)))) == "bca"
    assert _order("2d-las", _queue(*jobs, queues=PriorityQueues(thresholds_gpu_s=(9.0,)))) == "abc"


def test_finish_time_fairness_by_hand() -> None:
    """Four GPUs, four jobs: a's own part is one GPU of its four, so alone it takes 4 * 200 s; it has waited 100 s and
    needs 150: 250 / 800. The others take 1 * 100 s alone, and have waited 100, 40 and 0 s."""
    jobs = (
        job("a", 4, steps_total=200, steps_done=50),
        job("b", steps_total=100),
        job("c", steps_total=100, arrival_s=60.0),
        job("d", steps_total=100, steps_done=80, arrival_s=500.0),
    )
    assert _order("ftf", _queue(*jobs)) == "bcad"  # 2, 1.4, 0.3125, 0.2
    assert _order("ftf", _queue(jobs[0], jobs[3], gpus=0)) == "ad"
    assert _order("ftf", _queue(jobs[0], jobs[3], gpus=1000)) == "ad", "no part is more than a job can use"


@pytest.mark.parametrize(("gpus", "order"), [(2, "yx"), (8, "xy")])
def test_finish_time_fairness_weighs_the_part_that_a_job_has_of_the_cluster(gpus: int, order: str) -> None:
    """x waited 100 s and needs 200 of 200: 300 / 200 where half of the cluster are its four GPUs, a quarter of that
    where it is one of them. y: 120 / 100."""
    x, y = job("x", 4, steps_total=200), job("y", steps_total=100, arrival_s=80.0)
    assert _order("ftf", _queue(x, y, gpus=gpus)) == order


def test_a_job_of_unknown_length_is_judged_by_what_it_has_had_and_one_that_never_ran_comes_first() -> None:
    """a ran 20 of 100 s on two GPUs: with half of four GPUs its own, 5. b ran 50 s: 2. c: 110 / 10 s."""
    a, b, c = job("a", 2, attained_gpu_s=40.0), job("b", attained_gpu_s=50.0), job("c", steps_total=10)
    assert _order("ftf", _queue(a, b, gpus=4)) == "ab"
    assert _order("ftf", _queue(a, b, c, gpus=6)) == "cab"
    assert _order("ftf", _queue(job("new", arrival_s=100.0), c, gpus=4)) == "newc"
    unknown = job("u", steps_total=10, attained_gpu_s=95.0)
    assert _order("ftf", _queue(unknown, b, gpus=4, speeds_of={"u": 0.0})) == "bu"


def test_one_that_arrives_in_the_future_has_not_waited() -> None:
    early, late = job("e", attained_gpu_s=10.0, arrival_s=90.0), job("f", attained_gpu_s=10.0, arrival_s=900.0)
    assert _order("ftf", _queue(late, early)) == "ef"


def test_a_policy_of_ones_own_may_not_take_a_name_of_the_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(policies._KNOWN, "backwards", POLICIES["las"])  # gone again after the test
    with pytest.raises(ValueError, match="policy: fifo is a policy of kube-synergy"):
        register("fifo", POLICIES["las"])
    register("backwards", lambda queue: Ranking(tuple(one.name for one in reversed(queue.jobs))))
    assert _order("backwards", _queue(job("a"), job("b"))) == "ba"
    assert "backwards" not in BUILT_IN


FLAT = {"V100": Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0,),))}


def _names(result: Plan) -> list[str]:
    return [one.job for one in result.allocations]


def test_profile_runs_come_before_the_policys_order_by_arrival() -> None:
    jobs = [
        job("first", steps_total=10, profiles=FLAT),
        job("p-late", purpose="profile", arrival_s=3.0),
        job("p-early", purpose="profile", arrival_s=2.0),
        job("z-tied", purpose="profile", arrival_s=2.0),
    ]
    result = planned([node("n", 3)], jobs, policy="srtf", profile_gpu_percent=100)
    assert sorted(_names(result)) == ["p-early", "p-late", "z-tied"]
    assert [one.job for one in result.waiting] == ["first"]
    two = planned([node("n", 2)], jobs, policy="srtf", profile_gpu_percent=100)
    assert sorted(_names(two)) == ["p-early", "z-tied"]


@pytest.mark.parametrize("mode", ["round", "fill"])
def test_the_price_of_a_type_is_the_mean_over_its_gpus_of_nodes_that_have_some(mode: str) -> None:
    """V100s cost (1 * 2 + 3 * 6) / 4 = 5, K80s 1: five times as fast is not worth it, but six times is."""
    nodes = [
        node("a", 1, price_per_hour=2.0),
        node("b", 3, price_per_hour=6.0),
        node("none", 0, price_per_hour=0.0),
        node("k", 4, gpu_type="K80", price_per_hour=1.0),
    ]

    def typed(fast: float) -> Job:
        speeds = {"V100": fast, "K80": 1.0}
        profiles = {
            kind: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
            for kind, speed in speeds.items()
        }
        return job("j", profiles=profiles, gpu_types=tuple(speeds), steps_total=100)

    for fast, where in ((4.9, "K80"), (5.1, "V100")):
        (given,) = planned(nodes, [typed(fast)], policy="min-cost", mode=mode).allocations
        assert given.gpu_type == where


def test_between_rounds_types_of_a_matrix_hold_nobody_back_unless_idle_gpus_are_not_worth_it() -> None:
    running = job("r", profiles=FLAT, steps_total=10, running=holding("r", ("n", 1, 3, 60)))
    waiting = job("w", profiles=FLAT, steps_total=10, arrival_s=1.0)
    assert sorted(_names(planned([node("n", 2)], [running, waiting], policy="max-min-fairness", mode="fill"))) == [
        "r",
        "w",
    ]


def test_finish_time_fairness_counts_what_a_job_waited() -> None:
    """(100 + 10) / 100 of the old one, which is nearly done, and (0 + 100) / 100 of the new one."""
    old, new = job("o", steps_total=100, steps_done=90), job("n", steps_total=100, arrival_s=100.0)
    assert _order("ftf", _queue(new, old)) == "on"


def test_of_unknown_length_a_jobs_service_would_take_longer_on_its_own_part() -> None:
    """Two GPUs, two jobs: the wide one's 20 s would be 40 on one GPU, 100 / 40; the other ran 30 s, 100 / 30."""
    wide, small = job("w", 2, attained_gpu_s=40.0), job("s", attained_gpu_s=30.0)
    assert _order("ftf", _queue(wide, small, gpus=2)) == "sw"
