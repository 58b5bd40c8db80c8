"""Random clusters and queues (hypothesis), and a cluster one plan later."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from synergy_core.mechanisms import MECHANISMS
from synergy_core.model import Job, Mode, Node, Plan, PlanConfig, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies import POLICIES

GIB = 2**30
TYPES = ("A100", "V100")

configs = st.builds(
    PlanConfig,
    policy=st.sampled_from(sorted(POLICIES)),
    mechanism=st.sampled_from(sorted(MECHANISMS)),
    mode=st.sampled_from(("round", "fill")),
    profile_gpu_percent=st.sampled_from((0, 25, 100)),
)


def in_mode(config: PlanConfig, mode: Mode) -> PlanConfig:
    return replace(config, mode=mode)


@st.composite
def nodes(draw: st.DrawFn, *, foreign: bool = True) -> tuple[Node, ...]:
    found = []
    for index in range(draw(st.integers(1, 5))):
        gpus = draw(st.sampled_from((1, 2, 4, 8)))
        cpu = draw(st.integers(gpus * 500, gpus * 6000))
        memory = draw(st.integers(gpus * GIB, gpus * 70 * GIB))
        used = draw(st.booleans()) if foreign else False
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
                schedulable=draw(st.sampled_from((True, True, True, False))) if foreign else True,
            )
        )
    return tuple(found)


@st.composite
def profiles(draw: st.DrawFn, gpus: int, *, plain: bool = False) -> Profile:
    """What the memory model gives (the slower of CPU and storage sets the pace); where not plain also any numbers."""
    cpu = sorted(draw(st.sets(st.integers(1, gpus * 48).map(lambda n: n * 250), min_size=1, max_size=5)))
    memory = sorted(draw(st.sets(st.integers(1, gpus * 80).map(lambda n: n * GIB), min_size=1, max_size=4)))
    if plain or draw(st.booleans()):
        knee, saturated = draw(st.integers(250, gpus * 12000)), draw(st.integers(1, gpus * 80)) * GIB
        speed = [[10.0 * min(1.0, c / knee, 0.2 + 0.8 * m / saturated) for m in memory] for c in cpu]
    else:
        numbers = st.just(0.0) | st.floats(1e-6, 100.0)  # comparisons by ratio mean nothing among subnormal numbers
        speed = [[draw(numbers) for _ in memory] for _ in cpu]
    return Profile(cpu_millis=tuple(cpu), memory_bytes=tuple(memory), steps_per_s=tuple(map(tuple, speed)))


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
        bounds["purpose"] = draw(st.sampled_from(("train", "train", "profile")))
    return Job(
        name=name,
        gpus=gpus,
        arrival_s=float(draw(st.integers(0, 5))),
        attained_gpu_s=float(draw(st.integers(0, 5))),
        steps_total=draw(st.sampled_from((None, 100, 1000))),
        steps_done=draw(st.integers(0, 100)),
        gpu_types=types,
        profiles={kind: draw(profiles(gpus, plain=plain)) for kind in draw(st.sets(st.sampled_from(types or TYPES)))},
        preemptible=draw(st.sampled_from((True, True, True, False))),
        placement=draw(st.sampled_from(("auto", "auto", "spread", "consolidate"))),
        nodes=draw(st.sampled_from((None, None, None, ("n0",), ("n0", "n2", "n3")))),
        **bounds,
    )


@st.composite
def queues(draw: st.DrawFn, prefix: str, *, plain: bool = False, max_size: int = 10) -> tuple[Job, ...]:
    count = draw(st.integers(0, max_size))
    return tuple(draw(jobs(f"{prefix}{index}", plain=plain)) for index in range(count))


def later(snapshot: Snapshot, result: Plan) -> Snapshot:
    """The cluster once the plan has been carried out."""
    given = {allocation.job: allocation for allocation in result.allocations}
    return replace(snapshot, jobs=tuple(replace(job, running=given.get(job.name)) for job in snapshot.jobs))


@st.composite
def snapshots(draw: st.DrawFn, *, plain: bool = False, foreign: bool = True, disturbed: bool = False) -> Snapshot:
    """A cluster where some jobs run, as an earlier plan placed them, some have left, and others have come.

    A disturbed one has changed meanwhile: nodes are gone or cordoned, pods of others have come or left.
    """
    cluster = draw(nodes(foreign=foreign))
    first = Snapshot(nodes=cluster, jobs=draw(queues("a", plain=plain)))
    running = later(first, plan(first, in_mode(draw(configs), "round"))).jobs
    stayed = tuple(job for job in running if draw(st.sampled_from((True, True, False))))
    aged = tuple(replace(job, attained_gpu_s=float(draw(st.integers(0, 5)))) for job in stayed)
    if disturbed:
        others = {node.name: node for node in draw(nodes())}
        cluster = tuple(
            replace(others.get(node.name, node), gpu_type=node.gpu_type) if draw(st.booleans()) else node
            for node in cluster
        )
        cluster = tuple(node for node in cluster if draw(st.integers(0, 4)) > 0)
    return Snapshot(nodes=cluster, jobs=aged + draw(queues("b", plain=plain)))
