"""What a worker hears: the answers to its reports, as far as its node is reached, and when it was told to leave."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from synergy_job.departure import Departure
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import LeaseAnswer, LeaseClient, LeaseError, Report


@dataclass
class Answers:
    """When, in Unix seconds, a worker was last told to train on."""

    trains_on_at: float = 0.0


class ReachedClient(LeaseClient):
    """Reports from a node that can be cut off."""

    def __init__(self, access: LeaseAccess, reachable: Callable[[], bool], answers: Answers) -> None:
        super().__init__(access)
        self._reachable = reachable
        self._answers = answers

    def send(self, report: Report) -> LeaseAnswer:
        """No report, and no answer, gets through a cut."""
        if not self._reachable():
            raise LeaseError("no route to host")
        answer = super().send(report)
        if not self._reachable():
            raise LeaseError("the connection was lost")
        if not answer.leave:
            self._answers.trains_on_at = time.time()
        return answer


class HeardDeparture(Departure):
    """Remembers when (in Unix seconds) the lease endpoint first wanted the worker to leave, and when the worker heard
    of it, from there or by SIGTERM."""

    def __init__(self) -> None:
        super().__init__()
        self.told_by_lease: float | None = None
        self.told_at: float | None = None

    def request(self, in_s: float = 0.0) -> None:
        """What the library's reporter calls."""
        if self.told_by_lease is None:
            self.told_by_lease = time.time() + in_s
        self._hears()
        super().request(in_s)

    def terminate(self) -> None:
        """SIGTERM."""
        self._hears()
        super().request(0.0)

    def _hears(self) -> None:
        if self.told_at is None:
            self.told_at = time.time()
