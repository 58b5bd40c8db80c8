"""A simulation that begins with a snapshot."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Final, Literal

from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool
from synergy_core.model.resources import further_of
from synergy_core.model.snapshot import Allocation, Job, Node, Snapshot
from synergy_core.selection.diagnosis import could_run_at_once, never
from synergy_core.selection.job_info import JobInfo
from synergy_core.selection.kept_places import Likeness, likeness
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.job_classes import JobClasses
from synergy_core.throughput.speed import Speed
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.present import Present
from synergy_simulator.engine.rounds.clock import RoundClock
from synergy_simulator.engine.run import Run
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.links import Links
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.workloads.workload import Task, node_pools

Unknown = Literal["NoSteps", "NotProfiled", "NeverFits"]
"""The reason why the end of a job cannot be forecast."""

_ENDLESS: Final = float(1 << 50)
"""Steps of a job without a number of steps: it keeps its GPUs until the end of the simulation."""


def cluster_of(nodes: Sequence[Node]) -> Cluster:
    """The nodes as pools of equal nodes, each with the name of its first node."""
    alike: dict[tuple[str, int, int, int, float], list[Node]] = {}
    for node in nodes:
        key = (node.gpu_type, node.gpus, node.cpu_millis, node.memory_bytes, node.price_per_hour)
        alike.setdefault(key, []).append(node)
    return Cluster(tuple(_pool(group) for group in alike.values()))


def _pool(nodes: Sequence[Node]) -> SimulatedPool:
    first = nodes[0]
    return SimulatedPool(
        name=first.name,
        gpu_type=first.gpu_type,
        nodes=len(nodes),
        gpus_per_node=first.gpus,
        cpus_per_node=first.cpu_millis / 1000,
        memory_gib_per_node=first.memory_bytes / GIB,
        cost_per_hour=first.price_per_hour,
        replicas=first.replicas,
        gpu_memory_gib=first.gpu_memory_bytes / GIB,
        client_thread_percent=first.client_thread_percent,
    )


class Beginning:
    """Makes equal initial states for all simulations that start from a snapshot."""

    def __init__(self, snapshot: Snapshot, options: Options, starts_of: frozenset[str] = frozenset()) -> None:
        """The start of the jobs in `starts_of` is forecast even if their end cannot be."""
        self._snapshot = snapshot
        self._options = options
        self.cluster = cluster_of(snapshot.nodes)
        self._links = Links(snapshot.nodes, options.plan.link_bytes_per_s)
        self._pools = node_pools(snapshot.nodes)
        self._classes = JobClasses(further_of(snapshot.nodes), options.plan.demand_tolerance)
        self._never: dict[Likeness, bool] = {}
        self.tasks = {job.name: task_of(job, self._pools, options.plan) for job in snapshot.jobs}
        self.unknown: dict[str, Unknown] = {}
        """The jobs whose end cannot be forecast, with the reason."""
        for job in snapshot.jobs:
            reason = self._why_unknown(job)
            if reason is not None:
                self.unknown[job.name] = reason
        self.awaited = frozenset(self.tasks.keys() - self.unknown.keys())
        """The jobs whose end can be forecast."""
        self.awaited_starts = starts_of & {name for name, reason in self.unknown.items() if reason != "NeverFits"}
        """The jobs of which only the start can be forecast, and is."""

    def rounds(self, fine: int | None) -> RoundClock:
        """The rounds from the snapshot's moment on; with `fine`, later rounds are longer."""
        return RoundClock(self._options.round_s, self._snapshot.now, fine)

    def present(self, *, fine: int | None = None) -> Present:
        """The jobs at the snapshot's moment. With `fine`, later rounds are longer."""
        runs = tuple(self._run(job) for job in self._snapshot.jobs)
        return Present(
            now=self._snapshot.now,
            rounds=self.rounds(fine),
            nodes=self._snapshot.nodes,
            runs=runs,
            awaited=self.awaited,
            awaited_starts=self.awaited_starts,
            quotas=self._snapshot.quotas,
        )

    def _why_unknown(self, job: Job) -> Unknown | None:
        if self._never_fits(job):
            return "NeverFits"
        if job.purpose == "profile" and job.steps_left is None:
            return "NotProfiled"
        if job.seconds_left is not None:
            return None
        if job.steps_total is None:
            return "NoSteps"
        return "NotProfiled" if self.tasks[job.name].share_steps_per_s <= 0.0 and not _runs_known(job) else None

    def _never_fits(self, job: Job) -> bool:
        """True if the job could not train if nothing else did: no GPU type has enough GPUs for it on the nodes that it
        may use, with the CPU and memory that it asks for at least beside what others hold."""
        if job.running is not None:
            return False
        trains = job if job.purpose == "train" else replace(job, purpose="train")
        entry = QueueEntry(JobInfo(trains, self._pools, self._options.plan.demand_tolerance, self._classes))
        if could_run_at_once(entry, self._pools):
            return False
        like = likeness(entry)
        if like not in self._never:
            self._never[like] = never(entry, self._pools) is not None
        return self._never[like]

    def _run(self, job: Job) -> Run:
        task, now, options = self.tasks[job.name], self._snapshot.now, self._options
        run = Run(
            task,
            like=job,
            profiling_s=_profiling_s(job, options),
            preemption_cost_s=job.preemption_cost_s,
            fewest_nodes=self.cluster.fewest_nodes(job.gpus),
            links=self._links,
            tells_spread=options.plan.placement_sensitive,
        )
        if not run.profiling_s:
            run.left = _left(job, task)
        run.since = now
        run.gpu_s, run.waited_s, run.start_s = job.attained_gpu_s, job.waiting_s, job.started_s
        if job.running is not None:
            run.job.hold(_with_speed(job, job.running))
            run.steps_from = job.resumes_s if job.resumes_s is not None else now
        elif job.started_s is not None:
            run.steps_from = inf
        return run


def _profiling_s(job: Job, options: Options) -> float:
    """Seconds until a profile run ends; infinite if unknown."""
    if job.purpose != "profile":
        return 0.0
    if job.steps_left is not None:
        return job.steps_left
    return options.profiling_s or _ENDLESS


def _left(job: Job, task: Task) -> float:
    if job.seconds_left is not None:
        return job.seconds_left
    if job.steps_total is None:
        return _ENDLESS
    return job.steps_left if job.steps_left is not None else max(0.0, task.steps - job.steps_done)


def _runs_known(job: Job) -> bool:
    return job.running is not None and job.running.steps_per_s > 0


def _with_speed(job: Job, allocation: Allocation) -> Allocation:
    """The allocation with its speed. A missing speed comes from the job's matrix at the allocation's CPU and memory."""
    profile = job.profiles.get(allocation.gpu_type)
    if allocation.steps_per_s > 0 or profile is None or allocation.partners:
        return allocation
    amounts = sum(one.cpu_millis for one in allocation.workers), sum(one.memory_bytes for one in allocation.workers)
    return replace(allocation, steps_per_s=Speed(profile).at(amounts))


def task_of(job: Job, pools: Sequence[Pool], config: PlanConfig) -> Task:
    """The job as a task of the simulator: its steps, and its speed on each GPU type."""
    speeds = [
        JobClass(job, pool.further, config.demand_tolerance).best_speed([pool])
        for pool in pools
        if pool.gpu_type in job.profiles and (not job.gpu_types or pool.gpu_type in job.gpu_types)
    ]
    steps = job.exact_steps or float(job.steps_total or _ENDLESS)
    return Task(
        name=job.name,
        arrival_s=job.arrival_s,
        gpus=job.gpus,
        model=job.model,
        steps=steps,
        profiles=job.profiles,
        share_steps_per_s=max([*speeds, *job.measured.values(), 0.0]),
        alone_s=0.0,
        tenant=job.tenant,
        weight=job.weight,
        priority=job.priority,
        skew=job.skew,
        model_bytes=job.model_bytes,
        overlap=job.overlap,
        spread_speed=job.spread_speed,
        spread_speeds=job.spread_speeds,
        level_speeds=job.level_speeds,
        usage=job.usage,
        family=job.model,
        batch_size=job.batch_size,
    )
