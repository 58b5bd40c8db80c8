"""Guarantees and limits of tenants as constraints of Gavel's programmes."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import planning
from support.planner.tenants import NAMES, Tenants, trees
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot, Tenant
from synergy_core.model.tenant_tree import TenantTree
from synergy_core.plan import plan
from synergy_core.policies.rounds.tenant_bounds import bounds_of

often = settings(suppress_health_check=[HealthCheck.too_slow])
PROGRAMMES = (
    "finish-time-fairness",
    "gavel-fifo",
    "hierarchical",
    "makespan",
    "max-min-fairness",
    "max-min-fairness-water-filling",
    "max-throughput",
)
OTHERS = ("allox", "gandiva", "isolated", "proportional", "sjf", "min-cost")
TYPES = ("A100", "V100")
_CLOSE = 1e-6


def two_types(a100: int, v100: int) -> tuple[planning.Node, ...]:
    return tuple(
        planning.node(f"n-{kind}", gpus, cpus=3 * gpus, gib=60 * gpus, gpu_type=kind, price_per_hour=1.0)
        for kind, gpus in (("A100", a100), ("V100", v100))
    )


@st.composite
def mixes(draw: st.DrawFn) -> Snapshot:
    """Jobs of one to three GPUs, faster on one type or the other."""
    jobs = tuple(
        Job(
            name=f"j{index:02}",
            gpus=draw(st.integers(1, 3)),
            tenant=draw(st.sampled_from((*NAMES, "x", ""))),
            steps_total=draw(st.sampled_from((100, 1000))),
            arrival_s=float(draw(st.integers(-5, 0))),
            measured={kind: float(draw(st.integers(1, 8))) for kind in TYPES},
            gpu_types=draw(st.sampled_from(((), ("V100",)))),
        )
        for index in range(draw(st.integers(1, 12)))
    )
    nodes = two_types(draw(st.integers(1, 8)), draw(st.integers(1, 8)))
    return Snapshot(nodes=nodes, jobs=jobs, tenants=draw(trees()))


def time_of(snapshot: Snapshot, policy: str, **config: object) -> dict[tuple[str, str], float]:
    """GPUs that each job has of each type on average, by the allocation that a plan has found."""
    memory = Memory()
    plan(snapshot, PlanConfig(policy=policy, mechanism="proportional", **config), memory)  # type: ignore[arg-type]
    return {
        (job.name, kind): job.gpus * memory.solutions.last(job.name, kind) for job in snapshot.jobs for kind in TYPES
    }


def of_tenant(snapshot: Snapshot, time: dict[tuple[str, str], float], name: str, kind: str) -> float:
    tenants = Tenants(snapshot)
    return sum(time[job.name, kind] for job in snapshot.jobs if name in tenants.above(job.tenant))


@often
@given(mixes(), st.sampled_from((*PROGRAMMES, *OTHERS)), st.booleans())
def test_no_allocation_gives_a_tenant_more_than_its_limit(snapshot: Snapshot, policy: str, aware: bool) -> None:
    time = time_of(snapshot, policy, aware=aware)
    tenants = Tenants(snapshot)
    for name in tenants.listed:
        for kind in TYPES:
            assert of_tenant(snapshot, time, name, kind) <= tenants.cap(name, kind) + _CLOSE, (name, kind)


@often
@given(mixes(), st.sampled_from(PROGRAMMES))
def test_every_programme_gives_what_is_claimed_of_guarantees(snapshot: Snapshot, policy: str) -> None:
    time = time_of(snapshot, policy)
    free = {node.gpu_type: node.gpus for node in snapshot.nodes}
    tree = TenantTree(snapshot.tenants)
    jobs = sorted(
        (job for job in snapshot.jobs if any(tree.most(job, kind) >= job.gpus for kind in TYPES)),
        key=lambda job: (job.arrival_s, job.name),
    )
    speeds = {
        job.name: {
            kind: speed
            for kind, speed in job.measured.items()
            if kind in (job.gpu_types or TYPES) and min(free[kind], tree.most(job, kind)) >= job.gpus
        }
        for job in jobs
    }
    able = [job for job in jobs if speeds[job.name]]
    for bound in bounds_of(tree, able, speeds, free, ()):
        got = sum(time[able[index].name, TYPES[bound.type_]] for index in bound.jobs)
        assert bound.least - _CLOSE <= got <= bound.most + _CLOSE, bound


def claims(jobs: list[Job], *tenants: Tenant, v100: int = 8) -> dict[tuple[int, str], float]:
    speeds = {job.name: dict(job.measured) for job in jobs}
    found = bounds_of(TenantTree(tenants), jobs, speeds, {"A100": 8, "V100": v100}, ())
    return {(len(bound.jobs), TYPES[bound.type_]): bound.least for bound in found}


def test_jobs_claim_whole_gpus_of_what_they_can_have_at_once() -> None:
    jobs = [Job(name=f"j{n}", gpus=2, tenant="a", measured={"A100": 1.0, "V100": 2.0}) for n in range(3)]
    assert claims(jobs, Tenant("a", guarantee={"A100": 3, "V100": 5})) == {(3, "V100"): 4.0, (3, "A100"): 2.0}
    assert claims(jobs, Tenant("a", guarantee={"A100": 3, "V100": 5}), v100=2) == {(3, "V100"): 2.0, (3, "A100"): 2.0}
    assert claims(jobs, Tenant("a", guarantee={"A100": 1, "V100": 1})) == {}


def test_a_job_that_keeps_its_gpus_leaves_less_of_a_limit() -> None:
    tree = TenantTree((Tenant("a", limit={"V100": 5}),))
    keeping = Job(name="k", gpus=3, tenant="a", running=planning.holding("k", ("n-V100", 3, 9, 180)))
    job = Job(name="j", gpus=1, tenant="a", measured={"V100": 1.0})
    (bound,) = bounds_of(tree, [job], {"j": {"V100": 1.0}}, {"V100": 8}, [keeping])
    assert (bound.least, bound.most) == (0.0, 2.0)


@pytest.mark.parametrize("policy", PROGRAMMES)
def test_a_guarantee_costs_no_gpu_time(policy: str) -> None:
    """Without the guarantee the owner's one job would have the same as each of the guest's eight."""
    jobs = [Job(name="o", gpus=4, tenant="owner", steps_total=100, measured={"V100": 1.0})]
    jobs += [Job(name=f"g{n}", gpus=1, tenant="guest", steps_total=100, measured={"V100": 1.0}) for n in range(8)]
    tenants = (Tenant("owner", guarantee={"V100": 4}),)
    snapshot = Snapshot(nodes=two_types(1, 6)[1:], jobs=tuple(jobs), tenants=tenants)
    time = time_of(replace(snapshot), policy)
    assert time["o", "V100"] == pytest.approx(4.0, abs=1e-6)
    assert sum(time.values()) == pytest.approx(6.0, abs=1e-5)
