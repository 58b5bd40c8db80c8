"""Who stays, who enters, who leaves."""

import pytest

from support.planner.planning import holding, job, node, places, planned, reasons, shares
from synergy_core.cache import Memory
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Ranking
from synergy_core.selection.round import Round
from synergy_core.selection.scheduling_queue import JobIndex


def test_the_first_in_line_run_and_those_that_do_not_fit_are_skipped() -> None:
    jobs = [job("a", 6, arrival_s=1), job("b", 4, arrival_s=2), job("c", 2, arrival_s=3)]
    result = planned([node("n1")], jobs)
    assert places(result) == {"a": {"n1": 6}, "c": {"n1": 2}}
    assert reasons(result) == {"b": "NoFreeGPU"}


def test_running_jobs_stay_where_they_are_though_another_place_would_do() -> None:
    jobs = [
        job("old", 2, arrival_s=0, running=holding("old", ("n2", 2, 6, 125))),
        job("new", 4, arrival_s=1),
    ]
    result = planned([node("n1"), node("n2")], jobs)
    assert places(result)["old"] == {"n2": 2}
    assert result.preempted == ()


def test_newcomers_are_packed_around_running_jobs_onto_the_fullest_node() -> None:
    jobs = [job("old", 2, running=holding("old", ("n2", 2, 6, 125))), job("new", 4, arrival_s=1)]
    assert places(planned([node("n1"), node("n2")], jobs))["new"] == {"n2": 4}


def test_a_job_ahead_in_line_displaces_the_last_in_line_and_no_more() -> None:
    jobs = [
        job("first", 4, arrival_s=0),
        job("r1", 4, arrival_s=1, running=holding("r1", ("n1", 4, 12, 250))),
        job("r2", 2, arrival_s=2, running=holding("r2", ("n1", 2, 6, 125))),
        job("r3", 2, arrival_s=3, running=holding("r3", ("n1", 2, 6, 125))),
    ]
    result = planned([node("n1")], jobs)
    assert set(places(result)) == {"first", "r1"}
    assert result.preempted == ("r2", "r3")
    assert reasons(result) == {"r2": "YieldedToOthers", "r3": "YieldedToOthers"}


def test_a_displaced_job_whose_gpus_were_not_needed_after_all_stays() -> None:
    jobs = [
        job("first", 4, arrival_s=0),
        job("big", 7, arrival_s=1, running=holding("big", ("n1", 7, 21, 437))),
        job("small", 1, arrival_s=2, running=holding("small", ("n1", 1, 3, 62))),
    ]
    result = planned([node("n1")], jobs)
    assert places(result) == {"first": {"n1": 4}, "small": {"n1": 1}}
    assert result.preempted == ("big",)


def test_a_job_that_must_be_on_one_node_moves_a_job_behind_it() -> None:
    jobs = [
        job("whole", 8, arrival_s=0, placement="consolidate"),
        job("r1", 2, arrival_s=1, running=holding("r1", ("n1", 2, 6, 125))),
        job("r2", 2, arrival_s=2, running=holding("r2", ("n2", 2, 6, 125))),
    ]
    result = planned([node("n1"), node("n2")], jobs)
    assert places(result) == {"whole": {"n2": 8}, "r1": {"n1": 2}, "r2": {"n1": 2}}
    assert result.preempted == ("r2",)


def test_a_job_that_must_be_on_one_node_waits_where_only_jobs_ahead_of_it_stand_in_the_way() -> None:
    jobs = [
        job("r1", 2, arrival_s=0, running=holding("r1", ("n1", 2, 6, 125))),
        job("r2", 2, arrival_s=1, running=holding("r2", ("n2", 2, 6, 125))),
        job("whole", 8, arrival_s=2, placement="consolidate"),
    ]
    result = planned([node("n1"), node("n2")], jobs)
    assert reasons(result) == {"whole": "NoFreeNode"}


def test_a_job_that_may_not_be_preempted_keeps_its_gpus_in_spite_of_jobs_ahead_of_it() -> None:
    jobs = [
        job("first", 8, arrival_s=0),
        job("mine", 2, arrival_s=1, preemptible=False, running=holding("mine", ("n1", 2, 6, 125))),
    ]
    result = planned([node("n1")], jobs)
    assert places(result) == {"mine": {"n1": 2}}
    assert reasons(result) == {"first": "NoFreeGPU"}


@pytest.mark.parametrize("taken", [{"gpus_used": 7}, {"cpu_millis_used": 24_000}, {"memory_bytes_used": 500 * 2**30}])
@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_job_that_may_not_be_preempted_keeps_what_it_holds_where_others_took_the_rest(
    taken: dict[str, int], mechanism: str
) -> None:
    """Pods of others were faster, or a node's allocatable fell: that is nobody's reason to end a run for which the user
    asked `preemption: Never`."""
    held = holding("mine", ("n1", 2, 6, 125))
    jobs = [job("mine", 2, arrival_s=1, preemptible=False, running=held), job("new", 1, arrival_s=2)]
    result = planned([node("n1", **taken)], jobs, mechanism=mechanism)
    assert shares(result, "mine") == {"n1": (2, 6.0, 125.0)}
    assert result.preempted == ()
    assert places(result).keys() == {"mine"}


def test_a_job_that_may_not_be_preempted_leaves_a_node_that_is_gone() -> None:
    jobs = [job("mine", 2, preemptible=False, running=holding("mine", ("n1", 1, 3, 60), ("n2", 1, 3, 60)))]
    assert planned([node("n1", gpus=1)], jobs).preempted == ("mine",)


def test_nothing_new_comes_to_a_cordoned_node_and_what_runs_there_stays() -> None:
    jobs = [job("old", 2, running=holding("old", ("n1", 2, 6, 125))), job("new", 2, arrival_s=1)]
    result = planned([node("n1", schedulable=False)], jobs)
    assert places(result) == {"old": {"n1": 2}}
    assert reasons(result) == {"new": "NoAllowedNode"}


def test_displacing_someone_on_a_cordoned_node_helps_nobody_and_is_not_done() -> None:
    jobs = [job("first", 2), job("old", 2, arrival_s=1, running=holding("old", ("n1", 2, 6, 125)))]
    result = planned([node("n1", schedulable=False), node("n2", 1)], jobs)
    assert places(result) == {"old": {"n1": 2}}


def test_a_job_whose_node_is_gone_starts_anew_elsewhere() -> None:
    jobs = [job("old", 2, running=holding("old", ("lost", 2, 6, 125)))]
    result = planned([node("n1")], jobs)
    assert places(result) == {"old": {"n1": 2}}
    assert result.preempted == ("old",)


def test_fill_leaves_a_job_whose_node_is_gone_alone() -> None:
    running = holding("old", ("lost", 2, 6, 125))
    result = planned([node("n1")], [job("old", 2, running=running)], mode="fill")
    assert result.allocations == (running,)
    assert result.preempted == ()


def test_fill_counts_what_runs_on_a_node_that_now_has_another_gpu_type() -> None:
    jobs = [job("old", 6, running=holding("old", ("n1", 6, 18, 375), gpu_type="K80")), job("new", 4)]
    result = planned([node("n1")], jobs, mode="fill")
    assert places(result) == {"old": {"n1": 6}}


def test_fill_gives_free_gpus_to_those_who_wait_and_displaces_nobody() -> None:
    jobs = [
        job("first", 6, arrival_s=0),
        job("old", 4, arrival_s=1, running=holding("old", ("n1", 4, 12, 250))),
        job("small", 4, arrival_s=2),
    ]
    result = planned([node("n1")], jobs, mode="fill")
    assert places(result) == {"old": {"n1": 4}, "small": {"n1": 4}}
    assert result.preempted == ()


def test_fill_lets_no_one_in_on_the_share_of_a_job_that_needs_less() -> None:
    """`old` would be as fast with 4 of its 12 CPUs; the rest of its share is its own until the next round."""
    old = job("old", 4, wants=(4, 60), running=holding("old", ("n1", 4, 12, 250)))
    for least, enters in ((12_000, True), (13_000, False)):
        result = planned([node("n1")], [old, job("new", cpu_millis_min=least)], mode="fill")
        assert ("new" in places(result)) is enters


def _wait(*jobs: Job, explain: bool) -> list[str]:
    """Who is noted as waiting on one node, of these jobs in line."""
    memory = Memory()
    memory.begin((node("n1"),), 0.05)
    queue = JobIndex(jobs, memory).queue(Ranking(tuple(one.name for one in jobs)), without=())
    outcome = MECHANISMS["proportional"](Round(queue, memory.pools, "round", 0, explain))
    return [entry.name for entry, _ in outcome.waiting]


def test_where_no_one_asks_why_jobs_wait_the_walk_ends_with_the_last_gpu() -> None:
    """What a running job has counts no more as what others could displace once it stays, or is displaced."""
    old, new = job("old", 8, running=holding("old", ("n1", 8, 24, 500))), job("new", 8)
    assert (_wait(old, new, explain=True), _wait(old, new, explain=False)) == (["new"], [])
    assert (_wait(new, old, explain=True), _wait(new, old, explain=False)) == (["old"], [])


def test_but_not_while_the_smallest_job_could_have_a_gpu() -> None:
    jobs = [job("most", 7), job("large", 4, arrival_s=1), job("small", arrival_s=2)]
    assert places(planned([node("n1")], jobs, explain=False)).keys() == {"most", "small"}


def test_a_job_takes_the_gpu_type_on_which_it_is_fastest_where_there_is_room() -> None:
    nodes = [node("k", gpu_type="K80"), node("v", gpu_type="V100")]
    fast, slow = job("x", wants=(3, 60)).profiles["V100"], job("y", wants=(30, 60)).profiles["V100"]
    both = {"K80": slow, "V100": fast}
    jobs = [job("a", 8, arrival_s=0, profiles=both), job("b", 8, arrival_s=1, profiles=both)]
    assert places(planned(nodes, jobs)) == {"a": {"v": 8}, "b": {"k": 8}}


def test_a_job_takes_a_slower_gpu_that_is_idle_before_it_displaces_anyone() -> None:
    nodes = [node("k", gpu_type="K80"), node("v", gpu_type="V100")]
    jobs = [
        job("a", 8, arrival_s=0, wants=(24, 500)),
        job("old", 8, arrival_s=1, running=holding("old", ("v", 8, 24, 500))),
    ]
    result = planned(nodes, jobs)
    assert places(result) == {"a": {"k": 8}, "old": {"v": 8}}


def test_a_job_runs_on_one_type_only() -> None:
    nodes = [node("k", 4, gpu_type="K80"), node("v", 4, gpu_type="V100")]
    assert reasons(planned(nodes, [job("a", 8)])) == {"a": "TooManyGPUs"}


def test_a_job_goes_only_to_nodes_that_are_open_to_it() -> None:
    jobs = [job("a", 4, nodes=("n2",), arrival_s=1), job("b", 4, nodes=("n2",), arrival_s=0)]
    result = planned([node("n1"), node("n2", 4)], jobs)
    assert places(result) == {"b": {"n2": 4}}
    assert reasons(result) == {"a": "NoFreeGPU"}


class TestProfileRuns:
    """Jobs that are run to be measured."""

    def test_they_are_first_in_line_and_get_their_whole_demand(self) -> None:
        jobs = [job("a", 8, arrival_s=0), job("p", 1, purpose="profile", arrival_s=9, cpu_millis_min=12000)]
        result = planned([node("n1")], jobs)
        assert shares(result, "p") == {"n1": (1, 12, pytest.approx(62.5))}
        assert "a" not in places(result)

    def test_they_hold_no_more_than_their_share_of_the_gpus(self) -> None:
        jobs = [job(f"p{i}", 1, purpose="profile", arrival_s=i) for i in range(4)]
        result = planned([node("n1")], jobs, profile_gpu_percent=25)
        assert set(places(result)) == {"p0", "p1"}
        assert set(reasons(result).values()) == {"ProfileShareUsed"}

    def test_one_may_always_run(self) -> None:
        jobs = [job(f"p{i}", 4, purpose="profile", arrival_s=i) for i in range(2)]
        assert set(places(planned([node("n1")], jobs, profile_gpu_percent=0))) == {"p0"}

    def test_a_running_one_keeps_exactly_what_it_holds(self) -> None:
        running = holding("p", ("n1", 1, 20, 400))
        jobs = [job("a", 8), job("p", 1, purpose="profile", cpu_millis_min=24000, running=running)]
        result = planned([node("n1")], jobs)
        assert shares(result, "p") == {"n1": (1, 20, 400)}
        assert result.resized == ()

    def test_a_demand_above_what_the_node_has_is_cut_to_that(self) -> None:
        jobs = [job("p", 1, purpose="profile", cpu_millis_min=96000)]
        result = planned([node("n1", cpu_millis_used=4000)], jobs)
        assert shares(result, "p")["n1"][1] == 20

    def test_they_go_where_the_fewest_gpus_lose_their_cpus(self) -> None:
        nodes = [node("n1", 8), node("n2", 2)]
        jobs = [job("p", 1, purpose="profile", cpu_millis_min=12000)]
        assert places(planned(nodes, jobs)) == {"p": {"n2": 1}}
        busy = [*jobs, job("old", 7, running=holding("old", ("n1", 7, 7, 400)), wants=(7, 400))]
        assert places(planned(nodes, busy))["p"] == {"n2": 1}


def test_a_job_that_waits_for_cpu_beside_a_free_gpu_is_told_so() -> None:
    jobs = [job("p", 1, purpose="profile", cpu_millis_min=24000), job("a", 1, arrival_s=1), job("b", 8, arrival_s=2)]
    assert reasons(planned([node("n1")], jobs)) == {"a": "NoFreeCPUOrMemory", "b": "NoFreeGPU"}


class TestMinima:
    """Jobs that ask for at least so much CPU or memory."""

    def test_a_minimum_above_the_share_is_kept(self) -> None:
        jobs = [job("a", 1, cpu_millis_min=10000), job("b", 4, arrival_s=1)]
        result = planned([node("n1")], jobs, mechanism="proportional")
        assert shares(result, "a")["n1"][1] == 10
        assert shares(result, "b")["n1"][1] == 12

    def test_a_job_waits_where_its_minimum_does_not_fit_now(self) -> None:
        jobs = [job("a", 4, arrival_s=0), job("b", 1, arrival_s=1, cpu_millis_min=20000)]
        assert reasons(planned([node("n1")], jobs)) == {"b": "NoFreeCPUOrMemory"}

    def test_a_job_waits_where_its_minimum_never_fits(self) -> None:
        assert reasons(planned([node("n1")], [job("a", 1, cpu_millis_min=25000)])) == {"a": "MinimumTooLarge"}

    def test_a_maximum_is_kept_even_below_the_share(self) -> None:
        result = planned([node("n1")], [job("a", 1, wants=(12, 60), cpu_millis_max=2000)])
        assert shares(result, "a")["n1"][1] == 2


@pytest.mark.parametrize(
    ("reason", "jobs", "nodes"),
    [
        ("NoSuchGPUType", [job("a", gpu_types=("H100",))], [node("n1")]),
        ("NoSuchGPUType", [job("a")], []),
        ("NoAllowedNode", [job("a", nodes=("elsewhere",))], [node("n1")]),
        ("NoAllowedNode", [job("a")], [node("n1", cpu_millis_used=24000)]),
        ("TooManyGPUs", [job("a", 9)], [node("n1")]),
        ("TooManyGPUs", [job("a", 8)], [node("n1", gpus_used=1)]),
        ("TooManyGPUsForANode", [job("a", 9, placement="consolidate")], [node("n1"), node("n2")]),
        ("MinimumTooLarge", [job("a", memory_bytes_min=2**40)], [node("n1")]),
    ],
)
def test_a_job_that_can_never_run_is_told_so(reason: str, jobs: list, nodes: list) -> None:
    result = planned(nodes, jobs)
    assert reasons(result) == {"a": reason}


def test_every_message_names_a_next_step() -> None:
    result = planned([node("n1")], [job("a", 8), job("b", 3, arrival_s=1)])
    assert "fewer GPUs or more allowed GPU types" in result.waiting[0].message
    assert "3 GPUs" in result.waiting[0].message


def test_the_waiting_stand_in_the_order_of_the_line_with_profile_runs_ahead() -> None:
    jobs = [
        job("late", 8, arrival_s=3),
        job("early", 8, arrival_s=2),
        job("p", 8, purpose="profile", arrival_s=9, cpu_millis_min=1),
        job("running", 8, arrival_s=0, preemptible=False, running=holding("running", ("n1", 8, 24, 500))),
    ]
    assert [entry.job for entry in planned([node("n1")], jobs).waiting] == ["p", "early", "late"]
