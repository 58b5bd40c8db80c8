"""The simulation: events, and rounds that are planned by `synergy_core.plan` as on a cluster.

Three things happen: a job arrives, a job ends, a round begins. At the beginning of a round everything is planned anew;
between rounds GPUs that fall free are filled at once (mode `fill`), as the extender does. Time jumps from event to
event; a round in which nothing can have changed is passed over:

* no job came, ended or was resized since a plan that changed nothing, or each job has just the share of its nodes, and
* no job waits, or the order is the same too, or the jobs that fit into the cluster's GPUs in that order are those that
  run now.
"""

import time
from dataclasses import replace
from math import inf

from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_core.model.snapshot import Snapshot
from synergy_simulator.engine.arrival import arrived
from synergy_simulator.engine.carry_out import PlanExecution
from synergy_simulator.engine.holding import Holding
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.partial import PartialProfiles
from synergy_simulator.engine.planner import SimulatedPlanner, Watch
from synergy_simulator.engine.present import Present
from synergy_simulator.engine.rounds.clock import RoundClock
from synergy_simulator.engine.rounds.foreseen import ranking, same_jobs_run
from synergy_simulator.engine.rounds.passing_over import PassingOver
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.sharing.together import Together
from synergy_simulator.engine.stops import Awaited, PendingStops, Progress, Stops
from synergy_simulator.engine.tenancy import TenantUsage
from synergy_simulator.engine.usage import Usage
from synergy_simulator.inputs.links import Links
from synergy_simulator.workloads.workload import Task, Workload


def simulate(
    workload: Workload,
    options: Options,
    progress: Progress = lambda _done: None,
    watch: Watch = lambda _snapshot, _config: None,
    *,
    present: Present | None = None,
    stops: Stops | None = None,
    until_s: float = inf,
) -> Outcome:
    """Run a workload to its end. Deterministic: the same input gives the same outcome.

    With `present` the simulation begins in mid-life: with these jobs on these nodes, at that moment; the workload's
    tasks come later. `stops` is called at its moments. Nothing that would happen after `until_s` happens.
    """
    return _Simulation(
        workload, options, progress=progress, watch=watch, present=present, stops=stops, until_s=until_s
    ).run()


class _Simulation:
    def __init__(
        self,
        workload: Workload,
        options: Options,
        *,
        progress: Progress,
        watch: Watch,
        present: Present | None,
        stops: Stops | None,
        until_s: float,
    ) -> None:
        self._options = options
        self._workload = workload
        self._present = present
        self._nodes = workload.cluster.nodes() if present is None else present.nodes
        self._total_gpus = workload.cluster.gpus
        self._skip = PassingOver.of(options, several_types=len(workload.cluster.gpu_types) > 1)
        self._stops = PendingStops(stops)
        self._until_s = until_s
        self._rounds = RoundClock(options.round_s) if present is None else present.rounds
        self._awaited = Awaited(workload.tasks, options, present, progress)
        self._planner = SimulatedPlanner(workload, options.plan, watch)
        self._together = Together(replace(options.truth, measured=workload.pairs), self._nodes)
        self._partial = PartialProfiles(options.measured_types, self._nodes)
        self._links = Links(self._nodes, options.plan.link_bytes_per_s)
        self._now = 0.0
        self._coming = 0
        self._active: dict[str, Run] = {}
        self._profiling = 0
        self._settled = False
        self._queue_changed = False
        self._planned_at = -inf
        self._fill_at = inf
        self._usage = Usage(workload.cluster)
        self._holding = Holding(self._usage, options, self._rounds)
        self._running = self._holding.running
        self._tenants = options.tenants or workload.cluster.tenants
        self._usage.tenants = TenantUsage(self._tenants, workload.cluster, self._running, self._active)
        self._execution = PlanExecution(self._holding, self._together, self._partial)
        self._runs: list[Run] = []
        self._contention: dict[str, tuple[float, float]] = {}
        self._gpus = {task.name: task.gpus for task in workload.tasks}
        self._speeds = {task.name: task.share_steps_per_s for task in workload.tasks}
        if present is not None:
            self._begin_with(present)

    def run(self) -> Outcome:
        started = time.perf_counter()
        tasks = self._workload.tasks
        first = self._present.now if self._present is not None else tasks[0].arrival_s if tasks else 0.0
        self._usage.until = first
        begins = self._present is not None
        while self._awaited.left:
            moment = self._now if begins else self._next_event()
            self._look_before(moment)
            if moment > self._until_s:
                self._now = self._until_s
                self._usage.advance(self._now)
                break
            self._now = moment
            self._usage.advance(self._now)
            changed = self._end_due() | begins
            begins = False
            if not self._awaited.left:
                break
            changed |= self._arrive_due()
            for stop in self._stops.until(moment):
                self._look_at(stop)
            if self._now == self._rounds.start(self._now):
                self._round()
            elif self._options.fill:
                self._fill_at = min(self._fill_at, self._rounds.fill(self._now)) if changed else self._fill_at
                if self._fill_at <= self._now:
                    self._fill()
            if self._options.record:
                self._usage.note(self._now, len(self._active) - len(self._running))
        self._holding.stop_at(self._now)
        return Outcome(
            self._workload,
            self._options,
            self._runs,
            self._contention,
            self._usage,
            self._holding.segments,
            self._planner.seconds,
            time.perf_counter() - started,
            first,
            self._partial.errors,
        )

    # Time

    def _next_event(self) -> float:
        tasks = self._workload.tasks
        arrival = self._rounds.seen(tasks[self._coming].arrival_s) if self._coming < len(tasks) else inf
        moment = min(max(self._now, arrival), self._holding.next_end_s(), self._fill_at, self._next_round())
        if moment == inf and self._until_s < inf:
            return inf
        if moment == inf:
            stuck = sorted(set(self._active) - set(self._running))
            raise RuntimeError(f"the planner leaves {len(stuck)} jobs waiting on an idle cluster, {stuck[0]} first")
        return moment

    def _next_round(self) -> float:
        """When the next round begins that must be looked at."""
        if not self._active or not self._must_look():
            return inf
        start = self._rounds.start(self._now)
        return start if start > self._planned_at else self._rounds.after(start)

    def _must_look(self) -> bool:
        if not self._settled or not self._options.reuse_plans or self._skip.moves_all_the_time:
            return True
        if len(self._active) == len(self._running):
            return False
        return self._queue_changed or not self._skip.waits_in_vain

    # Events

    def _arrive_due(self) -> bool:
        tasks, before = self._workload.tasks, self._coming
        while self._coming < len(tasks) and self._rounds.seen(tasks[self._coming].arrival_s) <= self._now:
            self._arrive(tasks[self._coming])
            self._coming += 1
        return self._coming > before

    def _arrive(self, task: Task) -> None:
        run = arrived(task, self._options, self._workload.cluster, self._partial, self._links)
        run.since = min(task.arrival_s, self._now)
        self._admit(run)

    def _admit(self, run: Run) -> None:
        name = run.task.name
        self._profiling += run.profiling_s > 0
        self._active[name] = run
        self._runs.append(run)
        self._usage.wanted_gpus += run.task.gpus
        self._contention[name] = (self._usage.contention_s, inf)
        self._queue_changed = True

    def _begin_with(self, present: Present) -> None:
        """Take over the jobs that are there, and what they hold."""
        self._now = present.now
        members = {run.task.name: run.job for run in present.runs}
        for run in present.runs:
            name, allocation = run.task.name, run.job.running
            self._gpus[name], self._speeds[name] = run.task.gpus, run.task.share_steps_per_s
            self._admit(run)
            if allocation is not None:
                speed = self._together.steps_per_s(allocation, members)
                self._holding.take_over(run, allocation, speed, present.now)

    def _end_due(self) -> bool:
        ended = False
        for run in self._holding.ended(self._now):
            self._end(run)
            ended = True
        return ended

    def _end(self, run: Run) -> None:
        finish_s = run.ends_at
        self._holding.leave(run, self._now)
        self._settled = False
        if run.profiling_s:
            self._profiling -= 1
            run.measured()
            self._queue_changed = True
            return
        name = run.task.name
        run.finish_s = finish_s
        del self._active[name]
        self._usage.wanted_gpus -= run.task.gpus
        self._contention[name] = (self._contention[name][0], self._usage.contention_s)
        self._awaited.finish(name)

    # Planning

    def _round(self) -> None:
        self._planned_at, self._fill_at = self._now, inf
        if self._together.measured(self._running.values(), self._now) | self._partial.learn(self._running.values()):
            self._settled = False
        may_pass = self._options.reuse_plans and not self._skip.moves_all_the_time
        foreseen = may_pass and (self._settled or self._skip.keeps_amounts) and self._is_foreseen()
        if not self._active or foreseen:
            self._settled |= foreseen
            self._queue_changed = False
            return
        self._settled = not self._execution.carry_out(self._plan("round"), self._active, self._now)
        self._queue_changed = False

    def _is_foreseen(self) -> bool:
        if self._settled and len(self._active) == len(self._running):
            return True
        if self._settled and not self._queue_changed and self._skip.waits_in_vain:
            return True
        if not self._skip.can_foresee or self._profiling or any(tenant.binds for tenant in self._tenants):
            return False
        self._show_all()
        jobs = [run.job for run in self._active.values()]
        order = ranking(self._options.plan, jobs, speeds=self._speeds, gpus=self._total_gpus, now=self._now)
        return same_jobs_run(order, self._gpus, self._running, self._total_gpus)

    def _fill(self) -> None:
        self._fill_at = inf
        free = self._total_gpus - round(self._usage.gpus)
        if any(self._gpus[name] <= free for name in self._active if name not in self._running):
            changed = self._execution.carry_out(self._plan("fill"), self._active, self._now)
            self._settled = self._settled and not changed

    def _plan(self, mode: Mode) -> Plan:
        self._show_all()
        return self._planner.plan(self._snapshot(), mode)

    def _snapshot(self) -> Snapshot:
        jobs = tuple(run.job for run in self._active.values())
        return Snapshot(
            nodes=self._nodes,
            jobs=jobs,
            now=self._now,
            round_s=self._rounds.length(self._now),
            tenants=self._tenants,
            quotas=self._present.quotas if self._present is not None else (),
        )

    def _look_before(self, moment: float) -> None:
        """Let the caller look at its stops before `moment`: nothing happens until then."""
        for stop in self._stops.before(moment):
            self._now = max(self._now, stop)
            self._look_at(stop)

    def _look_at(self, stop: float) -> None:
        for run in self._active.values():
            run.show(self._now)
        self._stops.look(stop, self._snapshot(), self._runs)

    def _show_all(self) -> None:
        if not self._skip.order_never_changes:
            for run in self._active.values():
                run.show(self._now)
