"""What jobs ask of the planner, kept from one snapshot to the next: a job is worked out anew when something of it has
changed. Its times are those of that moment, and a clock tells the present ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from synergy_core.model import snapshot as core
from synergy_extender.cluster.placements import Sizes
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.entitlements import Entitlement
from synergy_extender.snapshot.known.admitted import AdmittedNodes
from synergy_extender.snapshot.times import Clock, Clocks, clock_of, differ_in_times_only


@dataclass(frozen=True, slots=True)
class _Known:
    view: JobView
    asked: tuple[Any, ...]
    request: core.Job
    clock: Clock


@dataclass(frozen=True, slots=True)
class _AtRest:
    view: JobView
    entitled: Entitlement
    request: core.Job | None


class KnownJobs:
    """For one caller that builds one snapshot after another. It changes nothing of what comes out."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}
        self._at_rest: dict[Key, _AtRest] = {}
        self._clocks: dict[str, Clock] = {}
        self._cluster: tuple[Any, ...] = ()
        self._order: list[Key] = []
        self._present: set[Key] = set()
        self.sizes: Sizes = {}
        """The sizes of the cluster's nodes, the same object as before if they are equal."""
        self.admitted = AdmittedNodes()
        """Of the present nodes."""

    @property
    def clocks(self) -> Clocks:
        """Of all jobs that want to train."""
        return dict(self._clocks)

    def begin(self, cluster: tuple[Any, ...], sizes: Sizes) -> None:
        """Another snapshot, of a cluster with these nodes. `cluster` is all of it that decides which nodes admit a
        template."""
        self.admitted.begin()
        if cluster != self._cluster:
            self.admitted, self._at_rest = AdmittedNodes(), {}
        self._cluster = cluster
        if sizes != self.sizes:
            self.sizes = sizes

    def in_order(self, jobs: Mapping[Key, JobView]) -> list[Key]:
        """The keys of the jobs in order. Jobs that are gone are forgotten."""
        if self._present != jobs.keys():
            gone, new = self._present - jobs.keys(), jobs.keys() - self._present
            for key in gone:
                self._forget(key)
            self._order = sorted([*(key for key in self._order if key not in gone), *new])
            self._present = set(self._order)
        return self._order

    def _forget(self, gone: Key) -> None:
        self._known.pop(gone, None)
        self._at_rest.pop(gone, None)
        self._clocks.pop(str(gone), None)

    def of(self, job: JobView, asked: tuple[Any, ...], build: Callable[[], core.Job]) -> core.Job:
        """The request of the job, which `build` makes of its view and of what is in `asked`. It is the same object as
        before where nothing but times has changed."""
        known = self._known.get(job.key)
        if known is not None and known.view is job and known.asked == asked:
            return known.request
        request = build()
        clock = clock_of(job, holds=request.running is not None)
        if known is not None and differ_in_times_only(known.request, request):
            request, clock = known.request, known.clock if clock == known.clock else clock
        self._known[job.key] = _Known(job, asked, request, clock)
        self._clocks[request.name] = clock
        return request

    def without_times(self, job: JobView) -> None:
        """The job asks for nothing, or for the place of a profile run: no time of it matters."""
        if self._known.pop(job.key, None) is not None:
            del self._clocks[str(job.key)]

    def at_rest(self, job: JobView, entitled: Entitlement) -> _AtRest | None:
        """What a job at rest asks for, if nothing has changed of it since the last snapshot."""
        known = self._at_rest.get(job.key)
        return known if known is not None and known.view is job and known.entitled is entitled else None

    def rests(self, job: JobView, entitled: Entitlement, request: core.Job | None) -> None:
        """A job at rest asks for this, until something changes."""
        self._at_rest[job.key] = _AtRest(job, entitled, request)
