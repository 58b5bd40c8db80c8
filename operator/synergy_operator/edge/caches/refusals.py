"""What the API server refused, by job, until the job's next run or its end. Kept in memory: see `views.refusals`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from synergy_api.reasons import Reason
from synergy_operator.views.metadata import Key
from synergy_operator.views.refusals import Refusals, RefusedMember, RefusedResize

TRANSIENT_ERROR_SECONDS: Final = 60.0
"""How long errors of the API server may keep a run from starting before the run counts as refused."""
_FORGET_SECONDS: Final = 90.0
"""After a time of this length without an error, the next error is a new one.

A failed reconcile is repeated after 30 s at most.
"""
_NONE: Final = Refusals()


@dataclass(frozen=True, slots=True)
class _Trouble:
    run: int
    since: float
    last: float


class RefusalLog:
    """Refusals of pods, Jobs, Services, gate removals and resizes."""

    def __init__(self, count: Callable[[str], None] | None = None) -> None:
        """`count` is called with the reason of each refusal."""
        self._count = count or (lambda reason: None)
        self._by_job: dict[Key, Refusals] = {}
        self._troubles: dict[Key, _Trouble] = {}

    def of(self, job: Key) -> Refusals:
        """What was refused for a job."""
        return self._by_job.get(job, _NONE)

    def refuse_run(
        self, job: Key, run: int, message: str, *, invalid: bool, reason: Reason = Reason.POD_REFUSED
    ) -> None:
        """A run cannot start: not now (quota, policy, a taken name), or never because its pod is `invalid`.

        `reason` names the object that the API server refused.
        """
        self._by_job[job] = replace(self.of(job), run=run, message=message, invalid=invalid, reason=reason)
        self._troubles.pop(job, None)
        self._count(reason.value)

    def note_transient_error(self, job: Key, run: int, now: float) -> float:
        """Record an error that may pass, on the way to a run's start. Return for how many seconds such errors have
        lasted.

        `now` is in seconds of a monotonic clock.
        """
        known = self._troubles.get(job)
        if known is None or known.run != run or now - known.last > _FORGET_SECONDS:
            known = _Trouble(run, now, now)
        self._troubles[job] = replace(known, last=now)
        return now - known.since

    def refuse_resize(self, job: Key, pod_uid: str, size: RefusedResize) -> None:
        """The API server refused a resize of a pod."""
        old = self.of(job)
        self._count(Reason.RESIZE_REFUSED.value)
        self._by_job[job] = replace(old, resizes={**old.resizes, pod_uid: size})

    def refuse_member(self, array: Key, member: RefusedMember | None) -> None:
        """The API server refused a member of an array; None: it made one."""
        old = self.of(array)
        if member is not None:
            self._count(Reason.MEMBER_REFUSED.value)
        if old.member != member:
            self._by_job[array] = replace(old, member=member)

    def forget(self, job: Key) -> None:
        """The job no longer exists."""
        self._by_job.pop(job, None)
        self._troubles.pop(job, None)

    def forget_pod(self, job: Key, pod_uid: str) -> None:
        """The pod no longer exists."""
        old = self._by_job.get(job)
        if old is not None and pod_uid in old.resizes:
            rest = {uid: size for uid, size in old.resizes.items() if uid != pod_uid}
            self._by_job[job] = replace(old, resizes=rest)
