"""The leader's forecasts: one at a time, in a process of its own, and seldom enough to cost a small part of a core."""

import asyncio
import logging
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Final

from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.estimates import Estimate
from synergy_extender.forecasts.question import ForecastAnswer, ForecastQuestion
from synergy_extender.forecasts.record import Record
from synergy_extender.forecasts.worker import ForecastFailed, ForecastWorker
from synergy_extender.leader import Lead
from synergy_extender.metrics import Metrics
from synergy_extender.planning.future import future_snapshot
from synergy_extender.planning.policy import PolicyInForce, plan_config

_LOG = logging.getLogger(__name__)
EVERY_S: Final = 60.0
IDLE: Final = 20.0
"""Between two forecasts pass so many times the CPU seconds of the last one: 5 % of a core at the most."""
DRAWS: Final = 10
TIMEOUT_S: Final = 600.0
_LOOK_S: Final = 1.0
_MOST_FAILURES: Final = 3
"""In a row, before the times are removed."""


class Forecasts:
    """What the newest forecast of this leader says, and how right its forecasts were.

    Another leader begins anew: until its first forecast, the present times stay. It makes that after its first minute,
    in which it has most to do; at once if no job has a time.
    """

    def __init__(self, metrics: Metrics, *, enabled: bool) -> None:
        self._metrics = metrics
        self._record = Record()
        self.enabled = enabled
        self._declared = True
        self.estimates: Mapping[Key, Estimate] | None = None if enabled else {}
        self._failed = 0

    @property
    def declared(self) -> bool:
        """Whether the served TrainingJobs have the fields: what is written in vain would be written again and again."""
        return self._declared

    @declared.setter
    def declared(self, declared: bool) -> None:
        self._declared = declared
        self._metrics.forecasts.off.labels("definitions").set(self.enabled and not declared)

    @property
    def told(self) -> Mapping[Key, Estimate] | None:
        """The times to write into jobs; None: the present times stay."""
        return self.estimates if self.declared else None

    def take(self, answer: ForecastAnswer, keys: Mapping[str, Key], made_at: float) -> None:
        """A new forecast of the moment `made_at`."""
        self._succeeded()
        for one in answer.starts:
            self._record.keep(made_at, one)
        self.estimates = {
            keys[one.job]: Estimate(one.p50, None if one.p90 == inf else one.p90)
            for one in answer.starts
            if one.p50 < inf and one.job in keys
        }

    def failed(self) -> None:
        """A forecast has failed. After a few, the times are removed: it grows old."""
        self._metrics.forecasts.failures.inc()
        self._failed += 1
        if self._failed >= _MOST_FAILURES:
            self.estimates = {}
            self._metrics.forecasts.off.labels("failures").set(1)

    def _succeeded(self) -> None:
        self._failed = 0
        self._metrics.forecasts.off.labels("failures").set(0)

    def note_starts(self, state: ClusterState, now: float) -> None:
        """Compare the jobs that hold GPUs since the last look with what was forecast of them."""
        if not len(self._record):
            return
        jobs = {str(key): job for key, job in state.jobs.items()}
        self._record.forget_all_but(jobs)
        for name in self._record:
            allocation = open_run(jobs[name])
            if allocation is None or allocation.purpose != "Train" or allocation.state != "Granted":
                continue
            for score in self._record.started(name, now):
                if score.error_s < inf:
                    self._metrics.forecasts.start_error.labels(score.horizon).observe(score.error_s)
                if score.place is not None:
                    self._metrics.forecasts.starts.labels(score.horizon, score.place).inc()

    def forget(self) -> None:
        """This replica leads no more."""
        self._record.clear()
        self._succeeded()
        if self.enabled:
            self.estimates = None


class ForecastLoop:
    """Makes forecasts while this replica leads and jobs wait."""

    def __init__(
        self,
        cache: ClusterCache,
        worker: ForecastWorker,
        forecasts: Forecasts,
        metrics: Metrics,
        *,
        lead: Lead,
        policy: Callable[[], PolicyInForce],
        clock: Callable[[], float],
        notify: Callable[[], None],
    ) -> None:
        """`policy` is the one that plans follow; `notify` is called after each forecast."""
        self._cache = cache
        self._worker = worker
        self._forecasts = forecasts
        self._metrics = metrics
        self._lead = lead
        self._policy = policy
        self._clock = clock
        self._notify = notify

    async def run(self) -> None:
        """Forecast until cancelled; not at all where forecasts are turned off."""
        if not self._forecasts.enabled:
            return
        await self._cache.wait_synced()
        led, next_at = False, 0.0
        while True:
            if not self._lead.leading:
                self._forecasts.forget()
                led = False
            else:
                if not led:
                    led, next_at = True, time.monotonic() + (EVERY_S if self._told_before() else 0.0)
                if time.monotonic() >= next_at:
                    used_s = await self._forecast()
                    next_at = time.monotonic() + pause_after(used_s)
            await asyncio.sleep(_LOOK_S)

    def _told_before(self) -> bool:
        """Whether jobs have the times of the leader before: good enough while a new leader has most to do."""
        queues = (job.status.queue for job in self._cache.jobs.values())
        return any(queue is not None and queue.estimated_start is not None for queue in queues)

    async def _forecast(self) -> float | None:
        """One forecast, if a job waits. Returns the CPU seconds that it took, None without a forecast."""
        now = self._clock()
        if not any(not job.at_rest and run_state(job, now) is RunState.WAITING for job in self._cache.jobs.values()):
            return None
        state = self._cache.state()
        begun, used_before = time.perf_counter(), _used_by_children_s()
        try:
            question = await asyncio.to_thread(question_of, state, self._policy(), now)
            answer = await self._worker.forecast(question)
            if self._lead.leading:
                self._forecasts.take(answer, {str(key): key for key in state.jobs}, now)
                self._notify()
        except (ForecastFailed, OSError) as error:
            self._forecasts.failed()
            _LOG.warning("forecast: %s", error)
        except Exception:  # noqa: BLE001 - whatever it is, plans go on, and so does the next forecast
            self._forecasts.failed()
            _LOG.exception("forecast failed")
        self._metrics.forecasts.seconds.observe(time.perf_counter() - begun)
        return _used_by_children_s() - used_before


def pause_after(used_s: float | None) -> float:
    """Seconds until the next forecast, after one that took so many CPU seconds, or none."""
    return 0.0 if used_s is None else max(EVERY_S, IDLE * used_s)


def _used_by_children_s() -> float:
    """CPU seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def question_of(state: ClusterState, policy: PolicyInForce, now: float) -> ForecastQuestion:
    """The request about the cluster at `now`. Pure."""
    config = replace(plan_config(policy, "round"), explain=False)
    return ForecastQuestion.about(future_snapshot(state, policy, now).snapshot, config, DRAWS)
