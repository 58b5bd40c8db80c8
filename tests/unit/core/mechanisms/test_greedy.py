"""Synergy-Greedy: first fit of whole demands in the order of the line (section 3.3)."""

import pytest

from support.planner.planning import holding, job, node, places, planned, reasons, shares
from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Job


def _greedy(*args, **more) -> Plan:
    return planned(*args, mechanism="greedy", **more)


def test_each_job_gets_its_whole_demand_or_is_skipped_though_gpus_are_free() -> None:
    jobs = [
        job("a", 1, wants=(20, 60)),
        job("b", 1, wants=(12, 60), arrival_s=1),
        job("c", 1, wants=(3, 60), arrival_s=2),
    ]
    result = _greedy([node("n1")], jobs)
    assert shares(result, "a")["n1"][1] == 20
    assert shares(result, "c")["n1"][1] == 3
    assert reasons(result) == {"b": "NoFreeCPUOrMemory"}


def test_it_takes_the_first_server_that_fits_not_the_fullest() -> None:
    jobs = [
        job("old", 4, wants=(12, 60), running=holding("old", ("n2", 4, 12, 60))),
        job("new", 1, wants=(3, 20), arrival_s=1),
    ]
    assert places(_greedy([node("n1"), node("n2")], jobs))["new"] == {"n1": 1}


def test_hungry_jobs_leave_gpus_idle_where_tune_would_fill_them() -> None:
    jobs = [job(f"j{i}", 1, wants=(12, 60), arrival_s=i) for i in range(8)]
    assert len(_greedy([node("n1")], jobs).allocations) == 2
    assert len(planned([node("n1")], jobs).allocations) == 8


def test_a_running_job_keeps_its_place_while_its_demand_fits_there() -> None:
    jobs = [
        job("first", 1, wants=(3, 20), arrival_s=0),
        job("old", 2, wants=(20, 60), arrival_s=1, running=holding("old", ("n1", 2, 20, 60))),
    ]
    result = _greedy([node("n1"), node("n2")], jobs)
    assert places(result) == {"first": {"n1": 1}, "old": {"n1": 2}}
    assert result.preempted == ()


def test_a_job_ahead_displaces_the_last_in_line_and_no_more_than_needed() -> None:
    jobs = [
        job("first", 1, wants=(12, 60), arrival_s=0),
        job("r1", 1, wants=(6, 60), arrival_s=1, running=holding("r1", ("n1", 1, 6, 60))),
        job("r2", 1, wants=(12, 60), arrival_s=2, running=holding("r2", ("n1", 1, 12, 60))),
    ]
    result = _greedy([node("n1")], jobs)
    assert set(places(result)) == {"first", "r1"}
    assert result.preempted == ("r2",)
    assert reasons(result) == {"r2": "YieldedToOthers"}


@pytest.mark.parametrize("mechanism", ["greedy", "drf", "tetris"])
@pytest.mark.parametrize(("wants", "gets"), [(24, 3), (21, 21)])
def test_who_may_not_be_displaced_grows_to_its_demand_only_beside_what_others_like_it_hold(
    mechanism: str, wants: int, gets: int
) -> None:
    def stays(name: str, cpus: int, arrival_s: float) -> Job:
        running = holding(name, ("n1", 1, 3, 60))
        return job(name, 1, wants=(cpus, 60), preemptible=False, running=running, arrival_s=arrival_s)

    for first, second in (("grows", "holds"), ("holds", "grows")):
        jobs = [stays("grows", wants, first == "holds"), stays("holds", 3, second == "holds")]
        result = planned([node("n1")], jobs, mechanism=mechanism)
        given = {name: shares(result, name)["n1"][1] for name in ("grows", "holds")}
        assert sum(given.values()) <= 24
        assert given["holds"] == 3
        if mechanism == "greedy":  # the others leave who is served as it is
            assert given["grows"] == gets


def test_nobody_is_displaced_for_a_job_that_would_not_fit_anyway() -> None:
    mine = job("mine", 1, wants=(18, 60), preemptible=False, running=holding("mine", ("n1", 1, 18, 60)), arrival_s=1)
    other = job("other", 1, wants=(3, 60), running=holding("other", ("n1", 1, 3, 60)), arrival_s=2)
    result = _greedy([node("n1")], [job("first", 1, wants=(12, 60)), mine, other])
    assert set(places(result)) == {"mine", "other"}
    assert reasons(result) == {"first": "NoFreeCPUOrMemory"}


def test_a_running_job_that_another_mechanism_gave_less_gets_its_demand_or_leaves() -> None:
    jobs = [job(f"j{i}", 1, wants=(12, 60), arrival_s=i, running=holding(f"j{i}", ("n1", 1, 3, 60))) for i in range(3)]
    result = _greedy([node("n1")], jobs)
    assert {name: shares(result, name)["n1"][1] for name in places(result)} == {"j0": 12, "j1": 12}
    assert result.resized == ("j0", "j1")
    assert result.preempted == ("j2",)


def test_a_job_is_not_split_for_more_cpu() -> None:
    jobs = [job(f"r{i}", 1, wants=(12, 20), running=holding(f"r{i}", (f"n{i}", 1, 12, 20))) for i in range(2)]
    result = _greedy([node("n0"), node("n1")], [*jobs, job("new", 2, wants=(16, 20), arrival_s=1)])
    assert reasons(result) == {"new": "NoFreeCPUOrMemory"}


def test_a_job_larger_than_a_server_is_split_evenly() -> None:
    result = _greedy([node("n1"), node("n2")], [job("a", 16, wants=(40, 700))])
    assert places(result) == {"a": {"n1": 8, "n2": 8}}
    assert len({(cpus, gib) for _, cpus, gib in shares(result, "a").values()}) == 1


def test_a_job_that_must_be_on_one_node_waits_for_its_gpus_and_says_so() -> None:
    jobs = [job(f"r{i}", 2, wants=(2, 20), running=holding(f"r{i}", (f"n{i}", 2, 2, 20))) for i in range(2)]
    result = _greedy([node("n0"), node("n1")], [*jobs, job("new", 8, placement="consolidate", arrival_s=1)])
    assert reasons(result) == {"new": "NoFreeNode"}


def test_a_demand_that_no_server_could_meet_even_when_empty_is_switched_to_the_share() -> None:
    """One server has the CPUs and the other the memory that the job would like."""
    uneven = [node("cpu", 2, cpus=32, gib=10), node("memory", 2, cpus=4, gib=500)]
    result = _greedy(uneven, [job("a", 1, wants=(30, 400))])
    assert shares(result, "a") in ({"cpu": (1, 16, 5)}, {"memory": (1, 2, 250)})


def test_fill_gives_free_places_to_those_whose_demand_fits_and_changes_nobody() -> None:
    jobs = [
        job("old", 4, wants=(20, 60), arrival_s=1, running=holding("old", ("n1", 4, 12, 250))),
        job("large", 1, wants=(20, 60), arrival_s=0),
        job("small", 1, wants=(6, 60), arrival_s=2),
    ]
    result = _greedy([node("n1")], jobs, mode="fill")
    assert shares(result, "old") == {"n1": (4, 12, 250)}
    assert shares(result, "small")["n1"][1] == 6
    assert reasons(result) == {"large": "NoFreeCPUOrMemory"}
    assert (result.preempted, result.resized) == ((), ())


def test_fill_leaves_a_job_whose_node_is_gone_alone() -> None:
    running = holding("old", ("lost", 2, 6, 125))
    result = _greedy([node("n1")], [job("old", 2, running=running)], mode="fill")
    assert result.allocations == (running,)
    assert result.preempted == ()
