"""The one road of all that the API server refuses on a run's way to running pods: the run is given back."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from synergy_api.reasons import Reason
from synergy_kube import ApiError
from synergy_operator.actions import Action, CreateJob, CreatePod, EnsureGangKey, EnsureService, UngatePod
from synergy_operator.edge.caches.refusals import TRANSIENT_ERROR_SECONDS, RefusalLog
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.job import JobView

INVALID: Final = (400, 422)
REFUSED: Final = (*INVALID, 403)
"""What the API server answers to a request that it will refuse again: not valid, not allowed, over quota."""
_REASONS: Final[Mapping[type[Action], Reason]] = {
    EnsureService: Reason.SERVICE_REFUSED,
    EnsureGangKey: Reason.START_REFUSED,
    CreatePod: Reason.POD_REFUSED,
    CreateJob: Reason.POD_REFUSED,
    UngatePod: Reason.START_REFUSED,
}


class NameTakenError(Exception):
    """An object of somebody else has the name that a run needs. The text says which."""


class RefusedStarts:
    """Decides what becomes of a run when the API server does not do what the run needs. `steady` gives seconds of a
    monotonic clock."""

    def __init__(self, refusals: RefusalLog, steady: Callable[[], float] = time.monotonic) -> None:
        self._refusals = refusals
        self._monotonic = steady

    def record(self, job: JobView, action: Action, error: BaseException) -> None:
        """Record a refusal; raises TryAgain so that the next reconcile gives the run back. Raises nothing where the
        error is none of a run's start, or may pass: the caller then raises it as it came."""
        reason, allocation = _REASONS.get(type(action)), open_allocation(job.status)
        if reason is None or allocation is None:
            return
        run = allocation.run
        if isinstance(error, NameTakenError):
            self._refuse(job, run, reason, str(error))
        if isinstance(error, ApiError) and error.code in REFUSED:
            # what cannot be a pod never can; a Service and a gate are of our making, only a policy can call them wrong
            invalid = reason is Reason.POD_REFUSED and error.code in INVALID
            self._refuse(job, run, reason, error.message, invalid=invalid)
        if isinstance(error, ApiError | TryAgain) and self.for_good(job, run):
            self._refuse(job, run, reason, f"{error}, for {TRANSIENT_ERROR_SECONDS:g} s")

    def for_good(self, job: JobView, run: int) -> bool:
        """Take note of an error that may pass; true once such errors have gone on for too long."""
        return self._refusals.note_transient_error(job.key, run, self._monotonic()) >= TRANSIENT_ERROR_SECONDS

    def _refuse(self, job: JobView, run: int, reason: Reason, words: str, *, invalid: bool = False) -> None:
        self._refusals.refuse_run(job.key, run, words, invalid=invalid, reason=reason)
        raise TryAgain(f"run {run}: {words}")
