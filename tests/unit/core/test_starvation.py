"""No job starves under a policy that gives it a share of the time: the bound of `policies/time_shares.py`."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from support.planning import GIB, job, node
from synergy_core.memory import Memory
from synergy_core.model import Allocation, Job, PlanConfig, Profile, Snapshot
from synergy_core.plan import plan

ROUND_S = 300.0
ROUNDS = 24
TYPES = ("K80", "V100")
POLICIES = ("hierarchical", "isolated", "max-min-fairness", "max-min-fairness-water-filling", "proportional")
"""Those whose X does not change with the steps that are done."""


@st.composite
def queues(draw: st.DrawFn) -> tuple[Job, ...]:
    """Jobs that arrived together and never end."""
    found = []
    for index in range(draw(st.integers(2, 7))):
        can = draw(st.sampled_from((TYPES, TYPES, TYPES[:1], TYPES[1:])))
        speeds = {gpu_type: draw(st.sampled_from((1.0, 2.0, 8.0))) for gpu_type in can}
        profiles = {
            gpu_type: Profile(cpu_millis=(1,), memory_bytes=(GIB,), steps_per_s=((speed,),))
            for gpu_type, speed in speeds.items()
        }
        gpus, weight = draw(st.sampled_from((1, 1, 2, 4))), draw(st.sampled_from((1.0, 1.0, 3.0)))
        found.append(job(f"j{index}", gpus, gpu_types=can, profiles=profiles, weight=weight, tenant=f"t{index % 2}"))
    return tuple(found)


@settings(deadline=None, max_examples=25)
@given(queues(), st.sampled_from(POLICIES), st.sampled_from((1, 4)))
def test_a_job_is_passed_over_no_more_often_than_its_share_allows(
    jobs: tuple[Job, ...], policy: str, most: int
) -> None:
    """See the module of time shares for the bound and its proof; here `served` are the rounds that a job had on the
    type where its share x is largest, `passed` those in which it ran nowhere."""
    gpus = max(most, *(one.gpus for one in jobs))
    nodes = tuple(node(gpu_type, gpus, gpu_type=gpu_type) for gpu_type in TYPES)
    memory, passed = Memory(), dict.fromkeys((one.name for one in jobs), 0)
    for number in range(ROUNDS):
        snapshot = Snapshot(nodes=nodes, jobs=jobs, now=number * ROUND_S, round_s=ROUND_S)
        held = {
            a.job: a for a in plan(snapshot, PlanConfig(policy=policy, mechanism="proportional"), memory).allocations
        }
        x = memory.solutions.last
        for one in jobs:
            best = max(TYPES, key=lambda gpu_type: x.get((one.name, gpu_type), 0.0))
            share = x.get((one.name, best), 0.0)
            if share > 1e-6 and one.name not in held:
                passed[one.name] += 1
                rivals = sum(other.gpus for other in jobs if other is not one and x.get((other.name, best), 0.0) > 1e-6)
                served = one.received_s.get(best, 0.0) / ROUND_S
                bound = (gpus * (served + 0.5) / share + 0.5 * rivals) / (gpus - one.gpus + 1)
                assert passed[one.name] <= bound + 1e-6, (one.name, number, share)
        jobs = tuple(_a_round_later(one, held.get(one.name)) for one in jobs)


def _a_round_later(one: Job, allocation: Allocation | None) -> Job:
    if allocation is None:
        return replace(one, running=None)
    had = one.received_s.get(allocation.gpu_type, 0.0) + ROUND_S
    return replace(one, running=allocation, received_s={**one.received_s, allocation.gpu_type: had})
