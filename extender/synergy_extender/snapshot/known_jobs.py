"""What jobs ask of the planner, kept from one snapshot to the next: a job is worked out anew when something of it has
changed, and else only its times."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from synergy_core.model import snapshot as core
from synergy_extender.cluster.placements import Sizes
from synergy_extender.cluster.run_state import (
    attained_gpu_seconds,
    received_seconds,
    run_started,
    spread_seconds,
    waiting_seconds,
)
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.preemption_budgets import preempted_s
from synergy_extender.snapshot.times import Times, times_of, with_times


@dataclass(frozen=True, slots=True)
class _Known:
    view: JobView
    asked: tuple[Any, ...]
    request: core.Job


class KnownJobs:
    """For one caller that builds one snapshot after another. It changes nothing of what comes out."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}
        self._next: dict[Key, _Known] = {}
        self._constraints: dict[Key, tuple[JobView, str]] = {}
        self._sizes: Sizes = {}

    def begin(self, sizes: Sizes) -> Sizes:
        """Another snapshot, of a cluster whose nodes have these sizes. Jobs that were not asked for in the last one are
        forgotten. Returns the sizes, as the same object as before if they are equal."""
        if self._next:
            self._known, self._next = self._next, {}
        self._constraints = {key: one for key, one in self._constraints.items() if key in self._known}
        if sizes != self._sizes:
            self._sizes = sizes
        return self._sizes

    def of(self, job: JobView, asked: tuple[Any, ...], now: float, build: Callable[[], core.Job]) -> core.Job:
        """The request of the job, which `build` makes of its view, of what is in `asked`, and of `now`."""
        known = self._known.get(job.key)
        if known is not None and known.view is job and known.asked == asked:
            request = at(known.request, job, now)
        else:
            request = build()
        self._next[job.key] = _Known(job, asked, request)
        return request

    def constraints(self, job: JobView) -> str:
        """The part of its template that picks nodes, as text."""
        known = self._constraints.get(job.key)
        if known is not None and known[0] is job:
            return known[1]
        text = json.dumps(job.constraints, sort_keys=True)
        self._constraints[job.key] = (job, text)
        return text


def at(request: core.Job, job: JobView, now: float) -> core.Job:
    """The request of the same view at another moment."""
    times = Times(
        attained_gpu_s=attained_gpu_seconds(job, now),
        waiting_s=waiting_seconds(job, now),
        run_started_s=None if request.running is None else run_started(job, now),
        received_s=received_seconds(job, now),
        received_spread_s=spread_seconds(job, now),
        preempted_s=preempted_s(job, now),
    )
    return request if times == times_of(request) else with_times(request, times)
