"""A job in the simulation: the planner's view of it, and its progress."""

from collections.abc import Mapping
from dataclasses import fields
from math import ceil

from synergy_core.model.snapshot import Allocation, Job, Profile, Purpose, Shared
from synergy_core.throughput import all_reduce
from synergy_simulator.inputs.links import Links
from synergy_simulator.workloads.workload import Task


class LiveJob(Job):
    """A job that the simulator moves on in place.

    One object serves all rounds, and the planner's cache finds it again. A frozen job made anew for each plan doubles
    the time of a simulation (decision 40).
    """

    __slots__ = ()

    def hold(self, running: Allocation | None) -> None:
        """Set what the job holds."""
        object.__setattr__(self, "running", running)

    def begin_run(self, now: float) -> None:
        """Note when its present run began."""
        object.__setattr__(self, "run_started_s", now)

    def start(self, now: float) -> None:
        """Note when it first got GPUs."""
        object.__setattr__(self, "started_s", now)

    def promote(self) -> None:
        """Let the clocks of the discretised queues begin anew."""
        object.__setattr__(self, "promoted_gpu_s", self.attained_gpu_s)
        object.__setattr__(self, "promoted_waiting_s", self.waiting_s)

    def note(self, shared: Shared) -> None:
        """Add what was measured while it shared; the newest of these partners counts."""
        others = [one for one in self.shared if (one.gpu_type, one.partners) != (shared.gpu_type, shared.partners)]
        object.__setattr__(self, "shared", (*others, shared))

    def enter_isolated(self, seconds: float, steps: float) -> None:
        """Note what its steps would have taken on 1/n of the cluster."""
        object.__setattr__(self, "isolated_s", seconds)
        object.__setattr__(self, "isolated_steps", steps)

    def measure(self, gpu_type: str, steps_per_s: float) -> None:
        """Note how fast it is on a type that it has no matrix for."""
        object.__setattr__(self, "measured", {**self.measured, gpu_type: steps_per_s})

    def wait(self, waiting_s: float) -> None:
        """Set how long it has waited."""
        object.__setattr__(self, "waiting_s", waiting_s)

    def time_left(self, seconds: float) -> None:
        """Set how long it still trains, if it ends by time."""
        object.__setattr__(self, "seconds_left", seconds)

    def progress(self, *, steps_done: int, attained_gpu_s: float, waiting_s: float) -> None:
        """Set how far it is, and what it had so far."""
        object.__setattr__(self, "steps_done", steps_done)
        object.__setattr__(self, "attained_gpu_s", attained_gpu_s)
        object.__setattr__(self, "waiting_s", waiting_s)


class Run:
    """A task from its arrival to its end. Times in seconds on the simulation's clock."""

    __slots__ = (
        "_fewest_nodes",
        "_like",
        "_links",
        "_preemption_cost_s",
        "_profiles",
        "_shown",
        "_tells_spread",
        "ends_at",
        "finish_s",
        "gpu_s",
        "held_from",
        "held_s",
        "job",
        "left",
        "preemptions",
        "profiling_s",
        "received_s",
        "received_spread_s",
        "segment_from",
        "since",
        "speed",
        "start_s",
        "steps_from",
        "task",
        "timed_s",
        "waited_s",
    )

    def __init__(
        self,
        task: Task,
        *,
        profiling_s: float,
        like: Job | None = None,
        profiles: Mapping[str, Profile] | None = None,
        preemption_cost_s: float = 0.0,
        fewest_nodes: Mapping[str, int] | None = None,
        links: Links | None = None,
        tells_spread: bool = False,
    ) -> None:
        """`profiles` are the matrices that the planner sees; by default all. `fewest_nodes` that could hold it are by
        GPU type, 1 on others; `tells_spread`: the planner knows what it keeps on more of them. `like` is the job of a
        snapshot that the planner sees in place of one made from the task."""
        self.task = task
        self._like = like
        self._profiles = task.profiles if profiles is None else profiles
        self._preemption_cost_s = preemption_cost_s
        self._fewest_nodes = fewest_nodes or {}
        self._tells_spread = tells_spread
        self._links = links
        self.profiling_s = profiling_s
        """Seconds of a profile run that the job still has to go through before it trains."""
        self.timed_s = None if like is None else like.seconds_left
        """Seconds that it trains, if it ends by time."""
        self.left = profiling_s or self._all()
        """Steps that are left; seconds while it is measured, and of a job that ends by time."""
        self.received_s: dict[str, float] = {} if like is None else dict(like.received_s)
        self.received_spread_s: dict[str, float] = {} if like is None else dict(like.received_spread_s)
        self.job = self._live("profile" if profiling_s else "train")
        self._shown = False
        """Whether it has held nothing since the planner's view was brought up to date: then only time has passed."""
        self.speed = 0.0
        self.since = task.arrival_s
        """The time before this is counted."""
        self.steps_from = 0.0
        """Before this it restores its checkpoint."""
        self.segment_from = 0.0
        self.ends_at = float("inf")
        self.start_s: float | None = None
        self.finish_s: float | None = None
        self.held_from: float | None = None
        """Since when it has held GPUs, for the first time in this simulation."""
        self.gpu_s = 0.0
        self.held_s = 0.0
        self.waited_s = 0.0
        self.preemptions = 0

    def _live(self, purpose: Purpose) -> LiveJob:
        task = self.task
        if self._like is not None:
            as_it_is = {one.name: getattr(self._like, one.name) for one in fields(Job)}
            received = {"received_s": self.received_s, "received_spread_s": self.received_spread_s}
            exact = {"exact_steps": None, "steps_left": None, "resumes_s": None}
            return LiveJob(**{**as_it_is, **received, **exact, "purpose": purpose})
        return LiveJob(
            name=task.name,
            gpus=task.gpus,
            arrival_s=task.arrival_s,
            weight=task.weight,
            priority=task.priority,
            tenant=task.tenant,
            gpu_types=tuple(task.profiles),
            profiles=self._profiles,
            steps_total=max(1, ceil(task.steps)),
            skew=task.skew,
            spread_speed=task.spread_speed if self._tells_spread else None,
            spread_speeds=task.spread_speeds if self._tells_spread else {},
            level_speeds=task.level_speeds if self._tells_spread else {},
            model=task.family,
            batch_size=task.batch_size,
            model_bytes=task.model_bytes,
            overlap=task.overlap,
            preemption_cost_s=self._preemption_cost_s,
            sharing=bool(task.usage),
            sharing_across_tenants=bool(task.usage),
            usage=task.usage,
            cpu_millis_max=task.cpu_millis_max,
            deadline_s=None if task.slo_s is None else task.arrival_s + task.slo_s,
            received_s=self.received_s,
            received_spread_s=self.received_spread_s,
            purpose=purpose,
        )

    @property
    def running(self) -> bool:
        """Whether it holds GPUs."""
        return self.job.running is not None

    def advance(self, now: float) -> None:
        """Count what happened until `now`."""
        passed = now - self.since
        if passed <= 0:
            return
        allocation = self.job.running
        if allocation is None:
            self.waited_s += passed
        else:
            self.held_s += passed
            self.gpu_s += passed * self.task.gpus
            self.received_s[allocation.gpu_type] = self.received_s.get(allocation.gpu_type, 0.0) + passed
            if allocation.spread:
                far = self.received_spread_s
                far[allocation.gpu_type] = far.get(allocation.gpu_type, 0.0) + passed
            stepping = now - max(self.since, self.steps_from)
            if stepping > 0:
                self.left -= stepping * self.speed
        self.since = now

    def show(self, now: float) -> None:
        """Bring the planner's view up to date."""
        self.advance(now)
        if self._shown and self.job.running is None:
            self.job.wait(self.waited_s)
            return
        self._shown = self.job.running is None
        if self.timed_s is not None and not self.profiling_s:
            self.job.time_left(max(0.0, self.left))
        most = self.job.steps_total
        done = 0 if self.profiling_s or self.timed_s is not None else int(self.task.steps - self.left)
        done = done if most is None else min(done, most)
        self.job.progress(steps_done=max(0, done), attained_gpu_s=self.gpu_s, waiting_s=self.waited_s)

    def hold(self, allocation: Allocation, now: float, steps_per_s: float) -> None:
        """Take a place, or go on with other amounts in the same place, at this speed."""
        self.advance(now)
        self._shown = False
        if self.start_s is None and not self.profiling_s:
            self.start_s = now
            self.job.start(now)
        if self.job.running is None:
            self.job.begin_run(now)
        self.job.hold(allocation)
        self.speed = self._pace(allocation, steps_per_s)
        self.ends_at = max(now, self.steps_from) + max(0.0, self.left) / self.speed if self.speed > 0 else float("inf")

    def resume(self, steps_per_s: float) -> None:
        """Go on with the allocation that the snapshot's job has, at this speed."""
        allocation = self.job.running
        assert allocation is not None, "a waiting job has nothing to go on with"
        self.speed = self._pace(allocation, steps_per_s)
        begins = max(self.since, self.steps_from)
        self.ends_at = begins + max(0.0, self.left) / self.speed if self.speed > 0 else float("inf")

    def _all(self) -> float:
        return self.task.steps if self.timed_s is None else self.timed_s

    def _pace(self, allocation: Allocation, steps_per_s: float) -> float:
        """How much of what is left is done in a second: steps, those of its pauses less; or seconds, if they count."""
        if self.profiling_s or self.timed_s is not None:
            return 1.0
        return steps_per_s * self._kept_by(allocation, steps_per_s) * (1.0 - self.job.pause_share)

    def _kept_by(self, allocation: Allocation, steps_per_s: float) -> float:
        """Part of its speed that it keeps in its placement: all of it on the fewest nodes, the nearest of them."""
        nodes, model_bytes, gpu_type = len(allocation.workers), self.task.model_bytes, allocation.gpu_type
        fewest = self._fewest_nodes.get(gpu_type, 1)
        depth = self._links.depth(gpu_type, [s.node for s in allocation.workers]) if self._links is not None else None
        level = self.task.level_speeds.get(gpu_type, {}).get(str(depth))
        if level is not None:
            return level
        known = self.task.spread_speeds.get(gpu_type, self.task.spread_speed)
        if known is not None and nodes > fewest:
            return known
        if nodes == 1 or known is not None or self._links is None or model_bytes is None or steps_per_s <= 0:
            return 1.0
        here = self._links.at(gpu_type, depth)
        near = self._links.nearest(gpu_type, self.task.gpus)
        if here is None or near is None or (here, nodes) == (near, fewest):
            return 1.0
        far, least = (
            all_reduce.spread_speed(model_bytes, steps_per_s, link, count, self.task.overlap)
            for link, count in ((here, nodes), (near, fewest))
        )
        return far / least

    def leave(self, now: float) -> None:
        """Give the place back."""
        self.advance(now)
        self.job.hold(None)
        self.ends_at = float("inf")

    def measured(self) -> None:
        """The profile run is over: now it wants to train."""
        self.profiling_s = 0.0
        self.left = self._all()
        self.job = self._live("train")
        self._shown = False
