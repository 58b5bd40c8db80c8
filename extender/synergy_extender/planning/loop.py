"""The leader's loop: look, plan, decide, write; again whenever something changed or a moment has come."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from synergy_core.explain.preemptions import preemptions
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.jobs.unstarted import Unstarted
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.concerned import KnownPlaces
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, Stances
from synergy_extender.failures import CALL_FAILED, explain
from synergy_extender.growth.autoscaling import Autoscaling
from synergy_extender.leader import Lead
from synergy_extender.metrics import Metrics
from synergy_extender.planner.worker import PlanFailed, PlanWorker
from synergy_extender.planning.clock_steps import ClockSteps
from synergy_extender.planning.first_plan import Refresh
from synergy_extender.planning.forecasting import Forecasts
from synergy_extender.planning.last_plan import LastPlan
from synergy_extender.planning.policy import PolicyInForce, ReadPolicy, with_prices
from synergy_extender.planning.publisher import Publisher
from synergy_extender.planning.questions import PlanQuestions
from synergy_extender.planning.skipped_fill import FillPlan, FillSignatures
from synergy_extender.planning.wake import DEBOUNCE_S, next_wake, rest_s
from synergy_extender.rounds import Moment, Rounds, Timetable
from synergy_extender.writing.job_statuses import JobStatuses
from synergy_extender.writing.writer import LeadLostError
from synergy_kube import KubeClient
from synergy_service.tracing import span

_LOG = logging.getLogger(__name__)
_AFTER_FAILURE_S = 1.0
_POSITIONS_AGAIN_S = 1.0
_READY_S = 3.0
"""For getting ready, how long the API server may take to tell of the jobs: the lead may come meanwhile."""
_SHORTCUTS_S = 30.0
"""For how long after its last pass a replica that leads no more keeps what it knows: on a busy machine a renewal may
come too late, and the lead comes back a second later."""


class PlanningLoop:
    """Plans and writes while this replica leads. What it remembers is only a shortcut: a new leader begins from the API
    server alone.

    What takes milliseconds runs in a thread or in the planner's process: the event loop answers the scheduler verbs.
    """

    def __init__(
        self,
        client: KubeClient,
        cache: ClusterCache,
        worker: PlanWorker,
        metrics: Metrics,
        *,
        lead: Lead,
        clock: Callable[[], float],
        forecasts: Forecasts | None = None,
    ) -> None:
        self._cache = cache
        self._forecasts = forecasts or Forecasts(metrics, enabled=False)
        self._worker = worker
        self._metrics = metrics
        self._leadership = lead
        self._clock = clock
        self._statuses = JobStatuses(client, cache, metrics, lead=lead, clock=clock)
        self._autoscaling = Autoscaling(client, cache, metrics, lead=lead)
        self._publisher = Publisher(client, cache, metrics, lead=lead, refused=self._autoscaling.refused)
        self._dirty = asyncio.Event()
        self._policy, self._read = PolicyInForce(), ReadPolicy()
        self._again_at: float | None = None
        self._timetable: Timetable | None = None
        self._clock_steps = ClockSteps()
        self._reserved: Mapping[Key, core.Allocation] = {}
        self._unstarted = Unstarted()
        self._last_fill: FillPlan | None = None
        self._questions = PlanQuestions(cache, worker)
        self._places, self._signatures = KnownPlaces(), FillSignatures()
        self._passed_at = 0.0
        self.last: LastPlan | None = None

    def notify(self) -> None:
        """Something changed that may affect a decision, or this replica began or ceased to lead."""
        self._dirty.set()

    @property
    def rounds(self) -> Rounds:
        """The rounds in force."""
        return Rounds(self._read.of(self._cache.policy, self._policy).spec.round_seconds)

    @property
    def policy(self) -> PolicyInForce:
        """The policy in force."""
        return with_prices(self._read.of(self._cache.policy, self._policy), self._policy, self._cache.capacities())

    @property
    def planned_round(self) -> int:
        """The newest round that is known as planned, by this replica or as the policy's status says; else 0."""
        if self._timetable is not None and self._leadership.leading:
            return self._timetable.planned
        return self._read.of(self._cache.policy, self._policy).planned_round

    async def run(self) -> None:
        """Plan whenever this replica leads, until cancelled."""
        await self._cache.wait_synced()
        try:
            await self._worker.start()  # a new leader plans at once
            while True:
                self._dirty.clear()
                if self._leadership.leading:
                    await self._lead()
                elif self._leadership.near:
                    await self._get_ready()
                else:
                    if time.monotonic() > self._passed_at + _SHORTCUTS_S:
                        self._drop_shortcuts()
                    await self._dirty.wait()
        finally:
            await self._worker.close()

    async def _get_ready(self) -> None:
        """The leader is silent: do what takes seconds before it is known to be gone, and write nothing."""
        try:
            with span("get ready"):
                async with asyncio.timeout(_READY_S):
                    await self._cache.refresh_jobs()
                await self._questions.get_ready(self.policy, self._clock(), self.rounds.solve_s)
        except (*CALL_FAILED, PlanFailed) as error:
            _LOG.warning("getting ready to lead: %s", explain(error))
        except Exception:  # noqa: BLE001 - a leader that is not ready reads and asks what is missing
            _LOG.exception("getting ready to lead")
        while self._leadership.near and not self._leadership.leading:
            await self._dirty.wait()
            self._dirty.clear()
        if not self._leadership.leading:
            self._drop_shortcuts()
            await self._worker.close()  # so does what its process knows
            await self._worker.start()

    async def _lead(self) -> None:
        self._forget()
        refresh = Refresh(self._cache)
        while self._leadership.leading:
            try:
                async with refresh.asking():
                    if refresh.answered:
                        await self._wait()
                    with span("pass"):
                        await self._pass(refresh)
                self._passed_at = time.monotonic()
            except LeadLostError:
                _LOG.warning("the lead was lost while writing; the rest of the plan is not written")
            except CALL_FAILED as error:
                _LOG.warning("planning: %s", explain(error))
                await self._recover()
            except Exception:  # noqa: BLE001 - whatever it is, verbs and leases go on, and so does the next pass
                self._metrics.planning.failures.inc()
                _LOG.exception("planning failed")
                await self._recover()

    async def _recover(self) -> None:
        """Before another try: what failed just now would most likely fail again at once."""
        await asyncio.sleep(_AFTER_FAILURE_S)
        self._dirty.set()

    def _forget(self) -> None:
        """What an earlier lead decided: another replica may have decided since."""
        self._timetable, self._again_at, self._last_fill = None, None, None
        self._reserved = {}
        self._unstarted.forget()
        self._statuses.forget()
        self._publisher.forget()

    def _drop_shortcuts(self) -> None:
        """Free what makes passes short. It changes no decision, so a lead that comes back soon still has it."""
        self._questions.forget()
        self._places, self._signatures = KnownPlaces(), FillSignatures()

    async def _wait(self) -> None:
        """Until something changed, and a moment longer, or until it is time."""
        now = self._clock()
        wake_at = next_wake(
            now, self._cache.jobs.values(), self._timetable, self._again_at, self._statuses.unwritten.next_in_s
        )
        rest_until = self._passed_at + rest_s(self._questions.computed_s, self._questions.planned_s)
        try:
            async with asyncio.timeout(max(0.0, wake_at - now)):
                await self._dirty.wait()
                await asyncio.sleep(max(DEBOUNCE_S, rest_until - time.monotonic()))
        except TimeoutError:
            pass
        self._dirty.clear()

    async def _pass(self, refresh: Refresh) -> None:
        """Decides nothing without the answer of `refresh`."""
        now = self._clock()
        self._again_at = None
        self._questions.begin()
        written = self._read.of(self._cache.policy, self._policy)
        self._policy = with_prices(written, self._policy, self._cache.capacities())
        if self._clock_steps.stepped(now):
            self._forget_times(now)
        rounds = Rounds(self._policy.spec.round_seconds)
        if self._timetable is None or rounds != self._timetable.rounds:
            self._timetable = Timetable(rounds, now)
        timetable = self._timetable
        mode, index = timetable.plan_at(now)
        arrivals = self._cache.arrivals
        self._statuses.unwritten.keep(self._cache.jobs)
        try:
            result = await self._plan(mode, index, now)
        except PlanFailed as error:
            self._metrics.planning.failures.inc()
            _LOG.error("planning failed: %s", error)
            await self._recover()
            # Until the boundary the round can still be planned. After it running jobs go on without a plan: ended runs
            # are released, and the next round is planned at its time.
            result, mode, index = None, "fill", index if self._clock() >= rounds.start(index) else timetable.planned
        last_fill, self._last_fill = self._last_fill, None
        if not refresh.answered:
            others = await refresh.finds_other_places()
            if others or (result is not None and timetable.plan_at(self._clock()) != (mode, index)):
                self._dirty.set()
                return
        now = self._clock()
        decision = await self._questions.compute(
            decide,
            self._questions.state(self._policy, now),
            Moment(now, rounds, index),
            result,
            self._cache.assumed.copy(),
            reserved=self._reserved,
            granted_since=self._unstarted.granted_since,
            freed_at=self._unstarted.freed_at,
            unstarted_since=self._unstarted.since,
            most_checkpoint_s=self._policy.leaving_s,
            counted=self._policy.history.pending if self._policy.history is not None else (),
            estimates=self._forecasts.told,
            known=self._places,
        )
        plan = result.plan if result is not None else None
        await self._autoscaling.keep(self._cache.state(), plan)
        with self._metrics.planning.write_seconds.labels(mode).time():
            done, more = await self._statuses.write(decision.changes, arrivals, new_round=mode == "round")
        if more:
            self._again_at = self._clock() + _POSITIONS_AGAIN_S
        if done.left:
            self._dirty.set()
        elif not done.dropped:
            self._last_fill = last_fill
        if mode == "round":
            self._metrics.planning.rounds.inc()
            if self._clock() > rounds.start(index):
                self._metrics.planning.late_rounds.inc()
        self._reserved, timetable.planned = decision.reserved, index
        await self._afterwards(plan)

    def _forget_times(self, now: float) -> None:
        """Forget the times of a clock that has been set since."""
        self._metrics.planning.clock_steps.inc()
        self._last_fill = None
        self._unstarted.forget()
        if self._timetable is not None:
            # the round of the new time counts as planned: no running job is moved because a clock was set
            self._timetable.planned = self._timetable.rounds.due(now)

    async def _plan(self, mode: Mode, index: int, now: float) -> PlanResult | None:
        state, left_out = self._questions.state(self._policy, now), self._statuses.unwritten.out_of_plans()
        built = await self._questions.snapshot(
            state, self._policy, mode, now, reserved=self._reserved, left_out=left_out
        )
        fill = FillPlan(self._signatures.of(built, self._policy), now) if mode == "fill" else None
        if fill is not None and self._last_fill is not None and self._last_fill.is_repeated_by(fill.signature, now):
            return None
        planned = await self._questions.plan(built, self._policy, mode, self.rounds.solve_s)
        self._last_fill = fill
        self._metrics.planning.seconds.labels(mode).observe(planned.seconds)
        if planned.plan.shares_from:
            self._metrics.planning.stand_in_allocations.labels(planned.plan.shares_from).inc()
        self.last = LastPlan(planned, mode, index, now)
        across = self._policy.spec.priorities.across
        found = await self._questions.compute(preemptions, built.base, planned.plan, across=across)
        ended = {one.job: one for one in found}
        return PlanResult(planned.plan, mode, Stances(state.jobs, now), built.refused, built.entitled, left_out, ended)

    async def _afterwards(self, plan: Plan | None) -> None:
        """What no worker waits for."""
        state = self._questions.state(self._policy, now := self._clock())
        await asyncio.to_thread(self._unstarted.note, state.jobs.values(), state.pods, self._cache.assumed.copy(), now)
        self._forecasts.note_starts(state, now)
        await self._statuses.repair(state.jobs.values())
        await self._autoscaling.follow(state, plan, self._reserved.values(), now)
        shares = self.last.planned.plan.shares_from if self.last is not None else ""
        await self._publisher.publish(state, self._policy, now, shares, planned=self.planned_round or None)
