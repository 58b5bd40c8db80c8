"""Random clusters and queues (hypothesis), and a cluster one plan later."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode, PlanConfig, PriorityQueues
from synergy_core.model.snapshot import Allocation, Job, Node, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import NAMES as SHARE_TIME

GIB = 2**30
FURTHER = ("network", "storage")
TYPES = ("A100", "V100")

THRESHOLDS = (2.0, 4.0)
"""GPU-seconds; `jobs` draws what they have attained on both sides."""

queue_settings = st.builds(
    PriorityQueues,
    thresholds_gpu_s=st.sampled_from((THRESHOLDS, THRESHOLDS[:1], ())),
    promote_knob=st.sampled_from((None, 0.5, 2.0)),
    service_gpu_s=st.sampled_from(((), (1.0, 3.0, 3.5, 9.0))),
)

FUNGIBLE = ("proportional", "tune")
"""Mechanisms that let run whoever's GPUs fit."""


def configs_of(
    mechanisms: Iterable[str], policies: Iterable[str] = tuple(POLICIES), **more: Any
) -> st.SearchStrategy[PlanConfig]:
    return st.builds(
        PlanConfig,
        policy=st.sampled_from(sorted(policies)),
        mechanism=st.sampled_from(sorted(mechanisms)),
        mode=st.sampled_from(("round", "fill")),
        profile_gpu_percent=st.sampled_from((0, 25, 100)),
        queues=queue_settings,
        **more,
    )


configs = configs_of(
    set(MECHANISMS) - {"opt"},
    pack_limit=st.sampled_from((None, None, 0.3)),
    minimum_run_s=st.sampled_from((0.0, 0.0, 100.0)),
    preemption_payback=st.sampled_from((0.0, 0.0, 10.0)),
)
"""Opt takes a solver's time for each plan: it has its own tests with fewer examples."""
fungible_configs = configs_of(FUNGIBLE)
filling_configs = configs_of(FUNGIBLE, set(POLICIES) - {"yarn-cs", *SHARE_TIME})
"""Policies that keep no GPU from whoever could use it: for the head of the line, or for those who share a GPU type."""


def in_mode(config: PlanConfig, mode: Mode) -> PlanConfig:
    return replace(config, mode=mode)


@st.composite
def nodes(draw: st.DrawFn, *, foreign: bool = True) -> tuple[Node, ...]:
    found = []
    names = draw(st.sampled_from(((), (), FURTHER[:1], FURTHER))) if foreign else ()
    for index in range(draw(st.integers(1, 5))):
        gpus = draw(st.sampled_from((1, 2, 4, 8)))
        cpu = draw(st.integers(gpus * 500, gpus * 6000))
        memory = draw(st.integers(gpus * GIB, gpus * 70 * GIB))
        used = draw(st.booleans()) if foreign else False
        further = {name: draw(st.integers(gpus * 10, gpus * 1000)) for name in names}
        found.append(
            Node(
                name=f"n{index}",
                gpu_type=draw(st.sampled_from(TYPES)),
                gpus=gpus,
                cpu_millis=cpu,
                memory_bytes=memory,
                gpus_used=draw(st.integers(0, gpus)) if used else 0,
                cpu_millis_used=draw(st.integers(0, cpu)) if used else 0,
                memory_bytes_used=draw(st.integers(0, memory)) if used else 0,
                further=further,
                further_used={name: draw(st.integers(0, all_)) for name, all_ in further.items()} if used else {},
                schedulable=draw(st.sampled_from((True, True, True, False))) if foreign else True,
                price_per_hour=draw(st.sampled_from((0.5, 2.0))),
            )
        )
    return tuple(found)


@st.composite
def profiles(draw: st.DrawFn, gpus: int, *, plain: bool = False) -> Profile:
    """What the memory model gives (the slower of CPU and storage sets the pace); where not plain also any numbers."""
    cpu = sorted(draw(st.sets(st.integers(1, gpus * 48).map(lambda n: n * 250), min_size=1, max_size=5)))
    memory = sorted(draw(st.sets(st.integers(1, gpus * 80).map(lambda n: n * GIB), min_size=1, max_size=4)))
    names = draw(st.sampled_from(((), (), FURTHER[1:], FURTHER)))
    points = st.sets(st.integers(1, gpus * 2000), min_size=1, max_size=3).map(lambda one: tuple(sorted(one)))
    further = {name: draw(points) for name in names}
    columns = list(product(memory, *further.values()))
    if plain or draw(st.booleans()):
        knee, saturated = draw(st.integers(250, gpus * 12000)), draw(st.integers(1, gpus * 80)) * GIB
        full = draw(st.integers(1, gpus * 1500))
        speed = [
            [
                10.0 * min(1.0, c / knee, 0.2 + 0.8 * m / saturated, *(0.3 + f / full for f in more))
                for m, *more in columns
            ]
            for c in cpu
        ]
    else:
        numbers = st.just(0.0) | st.floats(1e-6, 100.0)  # comparisons by ratio mean nothing among subnormal numbers
        speed = [[draw(numbers) for _ in columns] for _ in cpu]
    return Profile(
        cpu_millis=tuple(cpu), memory_bytes=tuple(memory), steps_per_s=tuple(map(tuple, speed)), further=further
    )


@st.composite
def clocks(draw: st.DrawFn, *, ran: bool) -> dict[str, Any]:
    """What discretised queues go by. A job that runs has started; one that never did has attained nothing."""
    started = ran or draw(st.booleans())
    attained, waiting = (float(draw(st.integers(0, 6))) for _ in range(2))
    promoted = draw(st.booleans())
    return {
        "attained_gpu_s": attained if started else 0.0,
        "waiting_s": waiting,
        "started_s": float(draw(st.integers(-3, 0))) if started else None,
        "promoted_gpu_s": float(draw(st.integers(0, int(attained)))) if promoted and started else 0.0,
        "promoted_waiting_s": float(draw(st.integers(0, int(waiting)))) if promoted else 0.0,
    }


@st.composite
def jobs(draw: st.DrawFn, name: str, *, plain: bool = False) -> Job:
    """A job; a plain one has no bounds, is no profile run, and its matrix is as the memory model gives it."""
    gpus = draw(st.sampled_from((1, 1, 1, 2, 2, 3, 4, 6, 8, 12)))
    types = draw(st.sampled_from(((), ("A100",), ("V100",), TYPES)))
    bounds: dict[str, Any] = {}
    if not plain and draw(st.integers(0, 3)) == 0:
        low, high = sorted(draw(st.tuples(st.integers(1, 12000), st.integers(1, 12000))))
        bounds = {"cpu_millis_min": low, "cpu_millis_max": draw(st.sampled_from((None, high)))}
        bounds["memory_bytes_min"] = draw(st.sampled_from((0, GIB, 64 * GIB)))
        bounds["further_min"] = draw(st.sampled_from(({}, {}, {"storage": 50})))
        bounds["further_max"] = draw(st.sampled_from(({}, {}, {"storage": 400})))
        bounds["purpose"] = draw(st.sampled_from(("train", "train", "profile")))
    return Job(
        name=name,
        gpus=gpus,
        arrival_s=float(draw(st.integers(0, 5))),
        **draw(clocks(ran=False)),
        steps_total=draw(st.sampled_from((None, 100, 1000))),
        steps_done=draw(st.integers(0, 100)),
        gpu_types=types,
        profiles={
            kind: draw(profiles(gpus, plain=plain)) for kind in sorted(draw(st.sets(st.sampled_from(types or TYPES))))
        },
        preemptible=draw(st.sampled_from((True, True, True, False))),
        placement=draw(st.sampled_from(("auto", "auto", "spread", "consolidate", "pack"))),
        skew=draw(st.sampled_from((0.1, 0.7))),
        spread_speed=draw(st.sampled_from((None, None, 0.5, 1.0))),
        preemption_cost_s=draw(st.sampled_from((0.0, 30.0))),
        nodes=draw(st.sampled_from((None, None, None, ("n0",), ("n0", "n2", "n3")))),
        measured=draw(st.sampled_from(({}, {}, {"A100": 3.0}, {"A100": 3.0, "V100": 2.0}))),
        **bounds,
    )


@st.composite
def queues(draw: st.DrawFn, prefix: str, *, plain: bool = False, max_size: int = 10) -> tuple[Job, ...]:
    count = draw(st.integers(0, max_size))
    return tuple(draw(jobs(f"{prefix}{index}", plain=plain)) for index in range(count))


def later(snapshot: Snapshot, result: Plan) -> Snapshot:
    """The cluster once the plan has been carried out."""
    given = {allocation.job: allocation for allocation in result.allocations}
    return replace(
        snapshot, jobs=tuple(_after(job, given.get(job.name), result, snapshot.now) for job in snapshot.jobs)
    )


def _after(job: Job, running: Allocation | None, result: Plan, now: float) -> Job:
    marks: dict[str, Any] = {}
    if job.started_s is None and running is not None:
        marks["started_s"] = now
    if job.name in result.promoted:
        marks |= {"promoted_gpu_s": job.attained_gpu_s, "promoted_waiting_s": job.waiting_s}
    return replace(job, running=running, **marks)


def _changed(node: Node, other: Node) -> Node:
    """The node as another one is, with the same GPU type and further resources."""
    return replace(other, gpu_type=node.gpu_type, further=node.further, further_used=node.further_used)


@st.composite
def snapshots(draw: st.DrawFn, *, plain: bool = False, foreign: bool = True, disturbed: bool = False) -> Snapshot:
    """A cluster where some jobs run, as an earlier plan placed them, some have left, and others have come.

    A disturbed one has changed meanwhile: nodes are gone or cordoned, pods of others have come or left.
    """
    cluster = draw(nodes(foreign=foreign))
    first = Snapshot(nodes=cluster, jobs=draw(queues("a", plain=plain)))
    running = later(first, plan(first, in_mode(draw(configs), "round"))).jobs
    stayed = tuple(job for job in running if draw(st.sampled_from((True, True, False))))
    aged = tuple(
        replace(
            job,
            **draw(clocks(ran=job.running is not None)),
            run_started_s=None if job.running is None else draw(st.sampled_from((None, -50.0, -500.0))),
        )
        for job in stayed
    )
    if disturbed:
        others = {node.name: node for node in draw(nodes())}
        cluster = tuple(
            _changed(node, others.get(node.name, node)) if draw(st.booleans()) else node for node in cluster
        )
        cluster = tuple(node for node in cluster if draw(st.integers(0, 4)) > 0)
    return Snapshot(nodes=cluster, jobs=aged + draw(queues("b", plain=plain)))
