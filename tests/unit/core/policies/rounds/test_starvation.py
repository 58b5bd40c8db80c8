"""No job starves under a policy that gives it a share of the time: the bounds of `policies/time_shares.py`."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import GIB, job, node
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.rounds.turns import ACCOUNTING_EVERY

ROUND_S = 300.0
TYPES = ("K80", "V100")
POLICIES = ("hierarchical", "isolated", "max-min-fairness", "max-min-fairness-water-filling", "proportional")
"""Those whose X does not change with the steps that are done."""


@st.composite
def queues(draw: st.DrawFn, gpus: tuple[int, ...] = (1, 1, 2, 4)) -> tuple[Job, ...]:
    """Jobs that arrived together and never end."""
    found = []
    for index in range(draw(st.integers(2, 7))):
        can = draw(st.sampled_from((TYPES, TYPES, TYPES[:1], TYPES[1:])))
        speeds = {gpu_type: draw(st.sampled_from((1.0, 2.0, 8.0))) for gpu_type in can}
        profiles = {
            gpu_type: Profile(cpu_millis=(1,), memory_bytes=(GIB,), steps_per_s=((speed,),))
            for gpu_type, speed in speeds.items()
        }
        size, weight = draw(st.sampled_from(gpus)), draw(st.sampled_from((1.0, 1.0, 3.0)))
        found.append(job(f"j{index}", size, gpu_types=can, profiles=profiles, weight=weight, tenant=f"t{index % 2}"))
    return tuple(found)


def _rounds(jobs: tuple[Job, ...], policy: str, gpus: int, rounds: int) -> Iterator[tuple[tuple[Job, ...], Memory]]:
    """The jobs in each round as they were planned, with what they hold in it, and what the planner remembers."""
    nodes = tuple(node(gpu_type, gpus, gpu_type=gpu_type) for gpu_type in TYPES)
    memory = Memory()
    for number in range(rounds):
        snapshot = Snapshot(nodes=nodes, jobs=jobs, now=number * ROUND_S, round_s=ROUND_S)
        config = PlanConfig(policy=policy, mechanism="proportional", explain=False)
        held = {a.job: a for a in plan(snapshot, config, memory).allocations}
        yield tuple(replace(one, running=held.get(one.name)) for one in jobs), memory
        jobs = tuple(_a_round_later(one, held.get(one.name)) for one in jobs)


def _share(one: Job, gpu_type: str, memory: Memory) -> float:
    return memory.solutions.last(one.name, gpu_type)


@settings(max_examples=20)
@given(queues(gpus=(1,)), st.sampled_from(POLICIES), st.sampled_from((1, 4)))
def test_a_job_of_one_gpu_among_such_jobs_runs_within_a_time_that_only_its_share_tells(
    jobs: tuple[Job, ...], policy: str, gpus: int
) -> None:
    waited = dict.fromkeys((one.name for one in jobs), 0)
    for planned, memory in _rounds(jobs, policy, gpus, 40):
        for one in planned:
            waited[one.name] = waited[one.name] + 1 if one.running is None else 0
            share = max(_share(one, gpu_type, memory) for gpu_type in TYPES)
            if share > 1e-6:
                assert waited[one.name] <= 2.2 / share + 3, (one.name, share)


@settings(max_examples=10)
@given(queues(), st.sampled_from(POLICIES), st.sampled_from((1, 4)))
def test_a_job_is_passed_over_no_more_often_than_its_share_allows(
    jobs: tuple[Job, ...], policy: str, most: int
) -> None:
    """`served` are the rounds that a job had on the type where its share x is largest, `passed` the accounting rounds
    in which it ran nowhere."""
    gpus = max(most, *(one.gpus for one in jobs))
    passed = dict.fromkeys((one.name for one in jobs), 0)
    for number, (planned, memory) in enumerate(_rounds(jobs, policy, gpus, 8 * ACCOUNTING_EVERY)):
        for one in planned if number % ACCOUNTING_EVERY == 0 else ():
            best = max(TYPES, key=lambda gpu_type: _share(one, gpu_type, memory))
            share = _share(one, best, memory)
            if share > 1e-6 and one.running is None:
                passed[one.name] += 1
                rivals = sum(
                    other.gpus for other in jobs if other.name != one.name and _share(other, best, memory) > 1e-6
                )
                served = one.received_s.get(best, 0.0) / ROUND_S
                bound = (gpus * (served + 0.5) / share + 0.5 * rivals) / (gpus - one.gpus + 1)
                assert passed[one.name] <= bound + 1e-6, (one.name, number, share)


def _a_round_later(one: Job, allocation: Allocation | None) -> Job:
    if allocation is None:
        return replace(one, running=None)
    had = one.received_s.get(allocation.gpu_type, 0.0) + ROUND_S
    return replace(one, running=allocation, received_s={**one.received_s, allocation.gpu_type: had})
