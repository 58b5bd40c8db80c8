"""Errors of the API server on a run's way to running pods: a run that cannot start is given back."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from synergy_api.reasons import Reason
from synergy_kube import ApiError
from synergy_operator.actions import (
    Action,
    ClaimPod,
    CreateJob,
    CreatePod,
    EnsureClaim,
    EnsureGangKey,
    EnsureService,
    SetSuspended,
    UngatePod,
)
from synergy_operator.edge.caches.refusals import TRANSIENT_ERROR_SECONDS, RefusalLog
from synergy_operator.edge.work_queue import TryAgain
from synergy_operator.run.allocation import open_allocation
from synergy_operator.views.job import JobView

INVALID: Final = (400, 422)
REFUSED: Final = (*INVALID, 403)
"""Codes of requests that the API server would refuse again: not valid, not allowed, over quota."""
_REASONS: Final[Mapping[type[Action], Reason]] = {
    EnsureService: Reason.SERVICE_REFUSED,
    EnsureGangKey: Reason.START_REFUSED,
    CreatePod: Reason.POD_REFUSED,
    CreateJob: Reason.POD_REFUSED,
    EnsureClaim: Reason.START_REFUSED,
    UngatePod: Reason.START_REFUSED,
    ClaimPod: Reason.START_REFUSED,
    SetSuspended: Reason.START_REFUSED,
}


class NameTakenError(Exception):
    """Another owner's object has a name that a run needs. The message names it."""


class RefusedStarts:
    """Decides what becomes of a run when the API server does not do what the run needs.

    `steady` gives seconds of a monotonic clock.
    """

    def __init__(self, refusals: RefusalLog, steady: Callable[[], float] = time.monotonic) -> None:
        self._refusals = refusals
        self._monotonic = steady

    def record(self, job: JobView, action: Action, error: BaseException) -> None:
        """Record a refusal and raise TryAgain, so the next reconcile gives the run back.

        Returns if the error does not concern a run's start, or may pass. The caller then raises it unchanged.
        """
        reason, allocation = _REASONS.get(type(action)), open_allocation(job.status)
        if reason is None or allocation is None:
            return
        run = allocation.run
        if isinstance(error, NameTakenError):
            self._refuse(job, run, reason, str(error))
        if isinstance(error, ApiError) and error.code in REFUSED:
            # an invalid pod stays invalid; Services and gates are the operator's own, so only a policy can refuse them
            invalid = reason is Reason.POD_REFUSED and error.code in INVALID
            self._refuse(job, run, reason, error.message, invalid=invalid)
        if isinstance(error, ApiError | TryAgain) and self.for_good(job, run):
            self._refuse(job, run, reason, f"{error}, for {TRANSIENT_ERROR_SECONDS:g} s")

    def for_good(self, job: JobView, run: int) -> bool:
        """Record an error that may pass. Return True once such errors have lasted too long."""
        return self._refusals.note_transient_error(job.key, run, self._monotonic()) >= TRANSIENT_ERROR_SECONDS

    def _refuse(self, job: JobView, run: int, reason: Reason, message: str, *, invalid: bool = False) -> None:
        self._refusals.refuse_run(job.key, run, message, invalid=invalid, reason=reason)
        raise TryAgain(f"run {run}: {message}")
