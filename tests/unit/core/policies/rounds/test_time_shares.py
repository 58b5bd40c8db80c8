"""Allocation policies in the planner: rounds that realise X (Gavel, sections 3.2 and 5)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.planner.allocation import SECTION_4_1, problem
from support.planner.planning import GIB, holding, job, node, planned
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Node, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.allocation import solve
from synergy_core.policies.rounds import time_shares

ROUND_S = 360.0
V100_AND_K80 = (node("v", 1, gpu_type="V100"), node("k", 1, gpu_type="K80"))


def _profiles(**speeds: float) -> dict[str, Profile]:
    """Speeds by GPU type, whatever CPU and memory a job gets."""
    return {
        gpu_type: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
        for gpu_type, speed in speeds.items()
    }


def _typed(name: str, gpus: int = 1, *, V100: float = 0.0, K80: float = 0.0, **more: Any) -> Job:  # noqa: N803
    speeds = {gpu_type: speed for gpu_type, speed in (("V100", V100), ("K80", K80)) if speed}
    return job(
        name, gpus, **{"profiles": _profiles(**speeds), "gpu_types": tuple(speeds), "steps_total": 10**9, **more}
    )


def _rounds(nodes: Sequence[Node], jobs: Sequence[Job], count: int, **config: Any) -> Iterator[Plan]:
    """Plans of so many rounds, each carried out to its end."""
    settings = PlanConfig(mechanism="proportional", **config)
    for number in range(count):
        snapshot = Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), now=number * ROUND_S, round_s=ROUND_S)
        result = plan(snapshot, settings)
        yield result
        held = {allocation.job: allocation for allocation in result.allocations}
        jobs = [_a_round_later(one, held.get(one.name)) for one in jobs]


def _a_round_later(one: Job, allocation: Any) -> Job:
    if allocation is None:
        return replace(one, running=None)
    received = {**one.received_s, allocation.gpu_type: one.received_s.get(allocation.gpu_type, 0.0) + ROUND_S}
    done = one.steps_done + round(allocation.steps_per_s * ROUND_S)
    return replace(one, running=allocation, received_s=received, steps_done=done)


def _fractions(plans: Sequence[Plan], names: Sequence[str], types: Sequence[str]) -> np.typing.NDArray[np.float64]:
    ran = [(allocation.job, allocation.gpu_type) for result in plans for allocation in result.allocations]
    return np.array([[ran.count((name, gpu_type)) / len(plans) for gpu_type in types] for name in names])


def test_rounds_give_the_jobs_of_section_4_1_the_time_that_x_says() -> None:
    jobs = [_typed(f"j{i}", V100=fast, K80=slow) for i, (fast, slow) in enumerate(SECTION_4_1)]
    plans = list(_rounds(V100_AND_K80, jobs, 150, policy="max-min-fairness"))
    x = solve(problem(SECTION_4_1, [1, 1]), "max-min-fairness").x
    assert _fractions(plans, ["j0", "j1", "j2"], ["V100", "K80"]) == pytest.approx(x, abs=0.03)
    assert all(len(result.allocations) == 2 for result in plans)  # no GPU idle, nobody on two


def test_a_job_moves_between_types_and_the_plan_says_so() -> None:
    jobs = [_typed(f"j{i}", V100=fast, K80=slow) for i, (fast, slow) in enumerate(SECTION_4_1)]
    plans = list(_rounds(V100_AND_K80, jobs, 40, policy="max-min-fairness"))
    moved = [
        allocation.job for result in plans for allocation in result.allocations if allocation.job in result.preempted
    ]
    assert "j2" in moved  # a tenth of its time on the V100, the rest on the K80


def test_between_rounds_nobody_moves() -> None:
    on_k80 = holding("a", ("k", 1, 24, 500), gpu_type="K80")
    jobs = [_typed("a", V100=10.0, K80=1.0, running=on_k80)]
    assert planned(V100_AND_K80, jobs, policy="max-min-fairness").allocations[0].gpu_type == "V100"
    assert planned(V100_AND_K80, jobs, policy="max-min-fairness", mode="fill").allocations[0].gpu_type == "K80"


@pytest.mark.parametrize("policy", ["max-min-fairness", "finish-time-fairness", "hierarchical", "proportional"])
def test_no_job_with_a_share_waits_longer_than_its_share_and_the_number_of_jobs_allow(policy: str) -> None:
    """A share of 1/8 of 8 GPUs for the largest job, all others being small: it is not passed over for ever."""
    jobs = [_typed("large", 8, V100=8.0), *(_typed(f"small{i}", V100=1.0) for i in range(9))]
    plans = list(_rounds([node("n")], jobs, 60, policy=policy))
    for one in jobs:
        ran = [index for index, result in enumerate(plans) if any(a.job == one.name for a in result.allocations)]
        gaps = np.diff([-1, *ran, 60])
        assert gaps.max() <= 1 + 2 * len(jobs), (one.name, gaps)


@pytest.mark.parametrize(("policy", "waits"), [("makespan", False), ("max-throughput", True)])
def test_under_makespan_a_job_that_is_passed_over_is_given_more_until_it_runs(policy: str, waits: bool) -> None:
    """40 rounds of work for each of nine jobs of one GPU, 10 for one of all 8: small shares of the time leave it no
    room. Under a policy that promises it nothing it waits until the others are done."""
    a_round = round(ROUND_S)
    jobs = [_typed("large", 8, V100=1.0, steps_total=10 * a_round)]
    jobs += [_typed(f"small{i}", V100=1.1, steps_total=44 * a_round) for i in range(9)]
    config, rounds, began = PlanConfig(policy=policy, mechanism="proportional"), 0, []
    while len(jobs) == 10:
        snapshot = Snapshot(nodes=(node("n"),), jobs=tuple(jobs), now=rounds * ROUND_S, round_s=ROUND_S)
        held = {allocation.job: allocation for allocation in plan(snapshot, config).allocations}
        began += [rounds] if "large" in held else []
        later = [_a_round_later(one, held.get(one.name)) for one in jobs]
        jobs, rounds = [one for one in later if one.steps_done < (one.steps_total or 0)], rounds + 1
        assert rounds <= 60
    assert (began == []) == waits, (began, rounds)


def test_a_job_is_never_given_a_type_that_it_has_no_speed_on_or_that_is_too_small_for_it() -> None:
    nodes = [node("v", 4, gpu_type="V100"), node("k", 2, gpu_type="K80")]
    jobs = [_typed("only-k80", K80=5.0), _typed("wide", 4, V100=1.0, K80=9.0), _typed("any", V100=2.0, K80=1.0)]
    for result in _rounds(nodes, jobs, 12, policy="max-min-fairness"):
        types = {allocation.job: allocation.gpu_type for allocation in result.allocations}
        assert types.get("only-k80", "K80") == "K80"
        assert types.get("wide", "V100") == "V100"


def test_what_a_job_keeps_to_its_end_is_not_given_to_others() -> None:
    kept = holding("kept", ("v", 1, 24, 500), gpu_type="V100")
    jobs = [_typed("kept", V100=1.0, running=kept, preemptible=False), _typed("other", V100=10.0, K80=1.0)]
    result = planned(V100_AND_K80, jobs, policy="makespan", mechanism="proportional")
    assert {a.job: a.gpu_type for a in result.allocations} == {"kept": "V100", "other": "K80"}


def test_jobs_of_unknown_length_and_speed_run_like_the_others() -> None:
    jobs = [job("unknown", gpu_types=("V100", "K80")), _typed("known", V100=10.0, K80=1.0, steps_total=None)]
    for policy in set(time_shares.NAMES) - time_shares.BY_COST:
        result = planned(V100_AND_K80, jobs, policy=policy, mechanism="proportional")
        assert {allocation.job for allocation in result.allocations} == {"unknown", "known"}, policy


def test_an_agnostic_scheduler_gives_the_fast_type_to_whom_it_helps_little_as_well() -> None:
    jobs = [_typed("picky", V100=10.0, K80=1.0), _typed("easy", V100=1.0, K80=1.0)]
    types = ["V100", "K80"]
    aware = list(_rounds(V100_AND_K80, jobs, 20, policy="max-min-fairness"))
    blind = list(_rounds(V100_AND_K80, jobs, 20, policy="max-min-fairness", aware=False))
    assert _fractions(aware, ["picky"], types)[0] == pytest.approx([1.0, 0.0], abs=0.1)
    assert _fractions(blind, ["picky"], types)[0] == pytest.approx([0.5, 0.5], abs=0.1)


def test_no_fast_gpu_stays_idle_while_who_has_time_on_it_runs_on_a_slower_one() -> None:
    """Proportional shares give everybody time on both types; what moves up leaves its K80 to who would wait."""
    nodes = [node("v", 1, gpu_type="V100"), node("k", 3, gpu_type="K80")]
    alone = [_typed("alone", V100=10.0, K80=1.0)]
    assert _fractions(list(_rounds(nodes, alone, 20, policy="proportional")), ["alone"], ["V100"])[0, 0] == 1.0
    blind = list(_rounds(nodes, alone, 20, policy="proportional", aware=False))
    assert _fractions(blind, ["alone"], ["V100"])[0, 0] == pytest.approx(0.25, abs=0.1)  # it cannot tell which is fast
    four = [_typed(f"j{i}", V100=10.0, K80=1.0) for i in range(4)]
    for result in _rounds(nodes, four, 10, policy="proportional"):
        assert len(result.allocations) == 4


def test_by_cost_a_faster_gpu_that_is_not_worth_its_price_stays_idle() -> None:
    nodes = [
        replace(node("v", 1, gpu_type="V100"), price_per_hour=10.0),
        replace(node("k", 1, gpu_type="K80"), price_per_hour=0.1),
    ]
    result = planned(nodes, [_typed("j", V100=10.0, K80=1.0)], policy="min-cost", mechanism="proportional")
    assert [allocation.gpu_type for allocation in result.allocations] == ["K80"]


def _ran_under_finish_time_fairness(jobs: tuple[Job, ...], first: int) -> list[str]:
    settings = PlanConfig(policy="finish-time-fairness", mechanism="proportional")
    ran = []
    for number in range(first, first + 30):
        snapshot = Snapshot(nodes=(node("v", 1, gpu_type="V100"),), jobs=jobs, now=number * ROUND_S, round_s=ROUND_S)
        ran.append(plan(snapshot, settings).allocations[0].job)
    return ran


def test_finish_time_fairness_makes_a_starved_job_good() -> None:
    """All three have waited as long; one of them has had its third, one twice that, and one nothing."""
    jobs = tuple(
        _typed(name, V100=1.0, steps_total=10**5, steps_done=done)
        for name, done in (("starved", 0), ("even", 12000), ("spoilt", 24000))
    )
    ran = _ran_under_finish_time_fairness(jobs, 100)
    assert ran.count("starved") > ran.count("even") > ran.count("spoilt")


def test_a_job_that_got_what_isolation_gives_has_the_share_of_max_min_fairness() -> None:
    """Two jobs of very different age, each with the progress that 1/2 of the GPU is worth: both have half."""
    old = _typed("old", V100=1.0, steps_total=10**6, isolated_s=36000.0, isolated_steps=9000.0, steps_done=9000)
    ran = _ran_under_finish_time_fairness((old, _typed("new", V100=1.0, steps_total=10**6, arrival_s=36000.0)), 100)
    assert ran.count("old") == pytest.approx(15, abs=2)


def test_the_account_values_steps_at_the_number_of_jobs_of_the_plan_that_enters_them() -> None:
    """100 steps cost 400 s among four; the next 50, alone on the GPU, 50 s."""
    four = tuple(_typed(f"j{i}", V100=1.0, steps_done=100 if i == 0 else 0) for i in range(4))
    settings = PlanConfig(policy="finish-time-fairness", mechanism="proportional")
    nodes = (node("v", 1, gpu_type="V100"),)
    (entry,) = plan(Snapshot(nodes=nodes, jobs=four, now=400.0), settings).isolated
    assert (entry.job, entry.steps) == ("j0", 100.0)
    assert entry.seconds == pytest.approx(400.0)
    left = replace(four[0], isolated_s=entry.seconds, isolated_steps=entry.steps)
    assert plan(Snapshot(nodes=nodes, jobs=(left,), now=500.0), settings).isolated == ()
    further = replace(left, steps_done=150)
    (entry,) = plan(Snapshot(nodes=nodes, jobs=(further,), now=500.0), settings).isolated
    assert entry.steps == 150.0
    assert entry.seconds == pytest.approx(450.0)
    lost = replace(left, steps_done=40)  # back to an older checkpoint: what was entered stands
    assert plan(Snapshot(nodes=nodes, jobs=(lost,), now=500.0), settings).isolated == ()


def test_gpus_that_x_leaves_over_go_to_whoever_can_use_them() -> None:
    """The shortest job takes the V100; the other two are left the K80, on which only one of them can run."""
    jobs = [
        _typed("short", V100=10.0, K80=1.0, steps_total=100),
        _typed("long", V100=10.0, steps_total=10**6),
        _typed("longer", V100=10.0, K80=2.0, steps_total=10**8),
    ]
    result = planned(V100_AND_K80, jobs, policy="sjf", mechanism="proportional")
    assert {a.job: a.gpu_type for a in result.allocations} == {"short": "V100", "longer": "K80"}


def test_fifo_gives_each_job_the_type_on_which_it_gains_and_moves_it_when_others_end() -> None:
    """The first counts twice: it is 1.5 times as fast on the V100, the second ten times."""
    jobs = [_typed("first", V100=3.0, K80=2.0), _typed("second", V100=10.0, K80=1.0, arrival_s=1.0)]
    result = planned(V100_AND_K80, jobs, policy="gavel-fifo", mechanism="proportional")
    assert {a.job: a.gpu_type for a in result.allocations} == {"first": "K80", "second": "V100"}
    alone = [replace(jobs[0], running=holding("first", ("k", 1, 24, 500), gpu_type="K80"))]
    assert planned(V100_AND_K80, alone, policy="gavel-fifo").allocations[0].gpu_type == "V100"


def test_fifo_is_a_line_that_moves_nobody() -> None:
    held = holding("here", ("k", 1, 24, 500), gpu_type="K80")
    jobs = [_typed("here", V100=9.0, K80=2.0, running=held), _typed("later", V100=1.0, K80=1.0, arrival_s=5.0)]
    for number in range(5):
        snapshot = Snapshot(nodes=V100_AND_K80, jobs=tuple(jobs), now=number * ROUND_S, round_s=ROUND_S)
        result = plan(snapshot, PlanConfig(policy="fifo", mechanism="proportional"))
        assert {a.job: a.gpu_type for a in result.allocations} == {"here": "K80", "later": "V100"}


@pytest.mark.parametrize("policy", ["best-effort", "yarn-cs"])
def test_those_who_never_preempt_stay_lines(policy: str) -> None:
    jobs = [_typed("first", V100=3.0, K80=2.0), _typed("second", V100=10.0, K80=1.0, arrival_s=1.0)]
    result = planned(V100_AND_K80, jobs, policy=policy, mechanism="proportional")
    assert {a.job: a.gpu_type for a in result.allocations} == {"first": "V100", "second": "K80"}
