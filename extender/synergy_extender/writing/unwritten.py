"""Jobs of which the API server refuses to take what the plan writes. One job's refusal is its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from synergy_api.reasons import Finding, Reason, say
from synergy_extender.cluster.views import JobView, Key
from synergy_kube import ApiError

FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 300.0
LONGEST_BUSY_WAIT_S = 30.0
"""After answers that say more of the API server than of the job (429, 5xx)."""
_BUSY_UNTOLD = 3
"""This many in a row are not reported: a job can do nothing about a busy API server."""
_TOO_LARGE = "too large"
_WORDS = 400
"""Characters of the API server's answer that are repeated."""


def is_busy(error: ApiError) -> bool:
    """Whether the answer may be another one soon, whatever the job looks like."""
    return error.code == 429 or (error.code >= 500 and _TOO_LARGE not in error.message)


@dataclass(frozen=True, slots=True)
class _Refusal:
    uid: str
    in_a_row: int
    until: float
    problem: str
    told: bool
    """Whether a write that only says why the job waits is out, or was refused as well."""
    announced: bool
    """Whether an event has reported it."""


class Unwritten:
    """Refused jobs. `clock` gives monotonic seconds.

    After a refusal nothing is written of the job, and it has no part in plans, for a time that doubles with each
    refusal in a row, or for as long as the API server asks (Retry-After). One write is an exception: why it waits.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_key: dict[Key, _Refusal] = {}

    def refused(self, job: JobView, error: ApiError, *, only_told: bool) -> Finding | None:
        """Take note. `only_told`: the write only said why the job waits. Returns the text of an event, once for
        refusals in a row."""
        before, now = self._of(job), self._clock()
        in_a_row, until = (before.in_a_row, before.until) if before is not None else (0, now)
        if until <= now or not only_told:
            in_a_row += 1
            longest = LONGEST_BUSY_WAIT_S if is_busy(error) else LONGEST_WAIT_S
            wait = min(longest, FIRST_WAIT_S * 2.0 ** min(in_a_row - 1, 16))
            until = now + max(wait, min(error.retry_after_s or 0.0, LONGEST_WAIT_S))
        problem = str(error)[:_WORDS]
        known = before is not None and before.announced
        announces = not known and (not is_busy(error) or in_a_row > _BUSY_UNTOLD)
        told = known or announces
        self._by_key[job.key] = _Refusal(job.uid, in_a_row, until, problem, told=only_told, announced=told)
        return say(Reason.STATUS_REFUSED, problem=problem) if announces else None

    def written(self, job: JobView, *, only_told: bool) -> None:
        """A write came through; one that only says why the job waits leaves it refused."""
        refusal = self._of(job)
        if refusal is None:
            return
        if only_told:
            self._by_key[job.key] = replace(refusal, told=True)
        else:
            del self._by_key[job.key]

    def may_write(self, job: JobView, *, only_told: bool) -> bool:
        """Whether to try a write of the job now."""
        refusal = self._of(job)
        if refusal is None or refusal.until <= self._clock():
            return True
        return only_told and not refusal.told

    def out_of_plans(self) -> Mapping[Key, Finding]:
        """The jobs that wait for another try, with their reason."""
        now = self._clock()
        return {
            key: say(Reason.STATUS_REFUSED, problem=refusal.problem)
            for key, refusal in self._by_key.items()
            if refusal.until > now
        }

    @property
    def next_in_s(self) -> float | None:
        """In how many seconds the next job is tried again."""
        now = self._clock()
        return min((refusal.until - now for refusal in self._by_key.values() if refusal.until > now), default=None)

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget jobs that are gone."""
        if not self._by_key:
            return
        present = set(keys)
        for key in self._by_key.keys() - present:
            del self._by_key[key]

    def __len__(self) -> int:
        return len(self._by_key)

    def _of(self, job: JobView) -> _Refusal | None:
        refusal = self._by_key.get(job.key)
        return refusal if refusal is not None and refusal.uid == job.uid else None
