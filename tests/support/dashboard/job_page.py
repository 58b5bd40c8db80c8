"""The dashboard's answer about one job of a made-up cluster."""

import math
import random
from dataclasses import dataclass, replace

from support.dashboard.answers import forecast
from support.dashboard.world import GIB, TYPES, World
from synergy_dashboard.api import answers
from synergy_dashboard.facts import ResizeFact, RunFact, Sample, Share, WaitFact
from synergy_view.history import Happening
from synergy_view.surface import Surface
from synergy_view.why import Holder, Why

RESIZED = 50
"""The sample from which on the job has more CPU and memory."""


@dataclass(frozen=True)
class Shape:
    """What a job asks for, and what a GPU's share of a node is."""

    name: str
    gpu_type: str
    gpus: int
    shares: dict[str, int]

    @property
    def cpu_per_gpu(self) -> int:
        """In milli-CPU."""
        return TYPES[self.gpu_type][1] // TYPES[self.gpu_type][0]

    @property
    def memory_per_gpu(self) -> int:
        """In bytes."""
        return TYPES[self.gpu_type][2] * GIB // TYPES[self.gpu_type][0]

    def given(self) -> tuple[Share, ...]:
        """More than the GPU-proportional share."""
        return tuple(
            Share(
                node=node,
                gpus=gpus,
                cpu_millis=int(1.4 * gpus * self.cpu_per_gpu),
                memory_bytes=int(1.2 * gpus * self.memory_per_gpu),
            )
            for node, gpus in self.shares.items()
        )


def surface(gpu_type: str, gpus: int, given: tuple[int, int] | None) -> Surface:
    """Speed that rises with CPU and memory and levels off."""
    node_gpus, cpu, memory = TYPES[gpu_type]
    cpu_points = tuple(int(cpu / node_gpus * gpus * factor) for factor in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5))
    memory_points = tuple(int(memory * GIB / node_gpus * gpus * factor) for factor in (0.25, 0.5, 0.75, 1, 1.5, 2))
    speeds = tuple(
        tuple(round(22 * min(1, 0.18 + c / 9) * min(1, 0.55 + m / 8), 3) for m in range(len(memory_points)))
        for c in range(len(cpu_points))
    )
    return Surface(
        gpu_type=gpu_type,
        cpu_millis=cpu_points,
        memory_bytes=memory_points,
        steps_per_s=speeds,
        demand=(cpu_points[6], memory_points[3]),
        given=given,
        confidence="High",
        uncertainty=0.042,
        runs=6,
        measured=cpu_points[::2],
    )


def _why(world: World, full: str) -> Why:
    row = world.queue.get(full)
    if row is None:
        job = world.jobs[full]
        place = f"it runs on {job.gpus} {job.gpu_type} GPUs of {job.nodes} nodes, {job.steps_per_s} steps/s"
        notes = ("DeadlineAtRisk: at this speed it ends 40m after its deadline",) if job.gpus > 4 else ()
        return Why(job=full, phase="Running", reason="Running", message=place, notes=notes)
    ahead = tuple(
        name for name, one in world.queue.items() if one.position is not None and one.position < (row.position or 0)
    )
    holders = [Holder(job.job, job.gpus, job.gpu_type, world.tenant_of[job.job]) for job in world.jobs.values()]
    return Why(
        job=full,
        phase="Queued" if row.position is not None else "Profiling",
        reason=row.reason,
        message=row.message,
        explanation="The job is planned as soon as enough GPUs of a type that it may use are free.",
        next_step=f"kubectl synergy when {row.job} -n {row.namespace}",
        position=row.position,
        ahead=ahead,
        holders=tuple(sorted(holders, key=lambda one: -one.gpus)),
    )


def _runs(shape: Shape, now: float, other: str, partners: tuple[str, ...] | None) -> list[RunFact]:
    """A profile run, one that was preempted, and one that runs if `partners` is not None."""
    preempted = RunFact(
        uid="u1",
        run=2,
        purpose="Train",
        gpu_type=shape.gpu_type,
        gpus=shape.gpus,
        shares=shape.given(),
        granted_s=now - 26_000,
        started_s=now - 25_940,
        revoked_s=now - 15_020,
        revoked_reason=f"for {other}: it has had 0.4 of its share, this job 1.6",
        ended_s=now - 15_000,
        outcome="Yielded",
        reason="it wrote a checkpoint and left",
        steps_per_s=18.4,
        proportional_steps_per_s=12.9,
    )
    none = replace(preempted, revoked_s=None, revoked_reason="", outcome="", reason="")
    profile = replace(
        none,
        run=1,
        purpose="Profile",
        granted_s=now - 30_000,
        started_s=now - 29_970,
        ended_s=now - 29_000,
        outcome="Profiled",
        reason="2 CPU points measured",
    )
    if partners is None:
        return [profile, preempted]
    running = replace(none, run=3, granted_s=now - 9000, started_s=now - 8950, ended_s=None, partners=partners)
    return [profile, preempted, running]


def _samples(shape: Shape, now: float) -> list[Sample]:
    draw = random.Random(shape.name)
    return [
        Sample(
            uid="u1",
            at_s=now - 9000 + 60 * place,
            steps=1100 * place,
            steps_per_s=round(
                18.4 + 1.2 * math.sin(place / 6) + draw.uniform(-0.5, 0.5) - (5 if place < RESIZED else 0), 2
            ),
            cpu_millis=int((1.0 if place < RESIZED else 1.4) * shape.gpus * shape.cpu_per_gpu),
            memory_bytes=int((1.0 if place < RESIZED else 1.2) * shape.gpus * shape.memory_per_gpu),
        )
        for place in range(150)
    ]


def _waits(now: float, runs: bool) -> list[WaitFact]:
    first = WaitFact(
        uid="u1",
        since_s=now - 32_000,
        until_s=now - 30_000,
        reason="WaitingForProfile",
        message="its profile runs wait",
        position=None,
    )
    second = WaitFact(
        uid="u1",
        since_s=now - 15_000,
        until_s=now - 9000 if runs else None,
        reason="WaitingForRoom",
        message="8 GPUs are wanted, 3 are free",
        position=4,
    )
    return [first, second]


def job(world: World, namespace: str, name: str) -> answers.JobPage | None:
    """`GET jobs/{namespace}/{name}`."""
    full = f"{namespace}/{name}"
    row = world.jobs.get(full) or world.queue.get(full)
    if row is None:
        return None
    now, running, waiting = world.now, world.jobs.get(full), world.queue.get(full)
    held = world.shares.get(full, {})
    some = held or {next(iter(world.nodes)): row.gpus}
    shape = Shape(full, world.nodes[next(iter(some))].gpu_type, row.gpus, some)
    other_type = "V100" if shape.gpu_type != "V100" else "T4"
    given = shape.given()
    sums = (sum(one.cpu_millis for one in given), sum(one.memory_bytes for one in given)) if held else None
    other = next((one for one in world.jobs if one != full), "research/other")
    resize = ResizeFact(uid="u1", run=3, at_s=now - 6000, shares=given)
    events = [
        Happening(now - 32_000, "Created", "the TrainingJob was created"),
        Happening(now - 25_940, "FirstStart", "the job ran for the first time"),
        Happening(now - 15_020, "Revoked", f"run 2 leaves for {other}"),
        Happening(now - 9000, "Planned", f"run 3 is planned on {', '.join(some)}"),
    ]
    return answers.JobPage(
        now=now,
        namespace=namespace,
        job=name,
        tenant=world.tenant_of[full],
        phase=_why(world, full).phase,
        gpus=row.gpus,
        gpu_types=list(waiting.gpu_types) if waiting else [shape.gpu_type, other_type],
        steps=row.steps or 0,
        steps_done=row.steps_done,
        metrics={},
        steps_per_s=running.steps_per_s if running else 0.0,
        created_s=now - 32_000,
        finished_s=None,
        preemptions=1,
        failures=0,
        why=_why(world, full),
        forecast=forecast(world, len(full)),
        surfaces=[surface(shape.gpu_type, row.gpus, sums), surface(other_type, row.gpus, None)],
        runs=_runs(shape, now, other, running.partners if running else None),
        waits=_waits(now, running is not None),
        resizes=[resize] if running else [],
        samples=_samples(shape, now) if running else [],
        events=events,
    )
