"""Allocations that take longer than a plan may wait: the solver goes on in a thread, and the next plan has them."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import AllocationMatrix
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.solver import LateSolution, Sought

_LOG = logging.getLogger(__name__)

LONGEST_S = 3600.0
"""A solve ends after that with the best that it has: what it began from is no more."""


class _Going:
    """A solve in a thread, which no caller waits for."""

    def __init__(self, sought: Sought, clock: Callable[[], float]) -> None:
        self.sought = sought
        self.answer: Future[AllocationMatrix] = Future()
        self._clock = clock
        self._until = clock() + LONGEST_S
        threading.Thread(target=self._solve, name="allocation", daemon=True).start()

    def give_up(self) -> None:
        """End at the next look at the clock."""
        self._until = float("-inf")

    def _solve(self) -> None:
        try:
            self.answer.set_result(self.sought.solve(Budget(lambda: self._until - self._clock())))
        except BaseException as error:  # noqa: BLE001 - whoever asks for the answer is told
            self.answer.set_exception(error)


class Overtime:
    """A `Solver`. What the budget of a plan cuts short is sought in full beside the plans. While that goes on no other
    is begun, and no plan waits. Where memory did not suffice for one, none of its policy is begun for an hour."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._going: _Going | None = None
        self._barred: dict[tuple[str, bool], float] = {}
        """Until when nothing is sought in full, by policy and whether it sees the types."""

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        """What is found within the budget; raises FieldError, SolverError and OutOfTimeError."""
        going = self._going
        if going is not None and (going.sought.policy, going.sought.aware) != (sought.policy, sought.aware):
            going.give_up()
        elif going is not None:
            raise OutOfTimeError
        self._going = None
        try:
            answer = sought.solve(budget)
        except OutOfTimeError:
            self._go_on(sought)
            raise
        if answer.status == "time-limit":
            self._go_on(sought)
        return answer

    def _go_on(self, sought: Sought) -> None:
        if self._clock() >= self._barred.get((sought.policy, sought.aware), float("-inf")):
            self._going = _Going(sought, self._clock)

    def late(self) -> LateSolution | None:
        """What an earlier plan's solve has found by now; None too where it failed: the next one is begun anew, after a
        MemoryError (a solve in full needs more memory than one that is cut short) not before an hour has gone by."""
        going = self._going
        if going is None or not going.answer.done():
            return None
        self._going = None
        try:
            return LateSolution(going.sought, going.answer.result())
        except (FieldError, MemoryError, OutOfTimeError, SolverError) as error:
            again = ""
            if isinstance(error, MemoryError):
                self._barred[going.sought.policy, going.sought.aware] = self._clock() + LONGEST_S
                again = "; the next one is begun in an hour"
            _LOG.warning("an allocation (%s) was sought in full in vain: %r%s", going.sought.policy, error, again)
            return None
