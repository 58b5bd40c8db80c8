"""What must be written: one change of status for each job. Runs are revoked before others enter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import SpeedEstimate
from synergy_api.parts.queues import Marks
from synergy_api.parts.summary import Summary
from synergy_api.parts.waiting import Late, PreemptionRecord, QueueStatus, Restriction
from synergy_extender.cluster.views import JobView


class ChangeKind(IntEnum):
    """What a change is, in the order of writing."""

    LEAVE = 0
    """Revoked or released."""
    STAY = 1
    """The same place with other numbers; what shrinks shrinks now."""
    ENTER = 2
    """A new place."""
    ADMIT = 3
    """The room is really free: gates may fall, growth comes into force."""
    QUEUE = 4
    """Why the job waits has changed."""
    POSITION = 5
    """Only the position in the queue or the wording has changed; may be written late."""
    ESTIMATE = 6
    """Only the estimated start has changed, and much; may be written later still."""


@dataclass(frozen=True)
class StatusChange:
    """The whole part of the status that the plan owns, as it shall be. `job` is what the decision rests on."""

    job: JobView
    kind: ChangeKind
    allocation: Allocation | None
    queue: QueueStatus | None
    marks: Marks | None = None
    late: Late | None = None
    estimates: list[SpeedEstimate] | None = None
    restriction: Restriction | None = None
    preemptions: Sequence[PreemptionRecord] = ()
    summary: Summary | None = None
    """Texts about the other fields. They alone are no reason to write."""

    @property
    def new_preemption(self) -> PreemptionRecord | None:
        """The preemption that the change records."""
        before, after = self.job.status.preemptions or (), self.preemptions
        return after[-1] if after and (not before or before[-1] != after[-1]) else None


@dataclass
class Draft:
    """A job's part of the status while a decision is being made."""

    job: JobView
    allocation: Allocation | None
    queue: QueueStatus | None
    marks: Marks | None
    late: Late | None
    estimates: list[SpeedEstimate] | None = None
    restriction: Restriction | None = None
    preemptions: list[PreemptionRecord] = field(default_factory=list)
    kind: ChangeKind = ChangeKind.POSITION

    @classmethod
    def of(cls, job: JobView) -> "Draft":
        """The present state."""
        status = job.status
        return cls(
            job,
            status.allocation,
            status.queue,
            status.marks,
            status.late,
            status.estimates,
            status.restriction,
            list(status.preemptions or ()),
        )

    @property
    def granted(self) -> Allocation | None:
        """The allocation where it is a place that the job holds."""
        return self.allocation if self.allocation is not None and self.allocation.state == "Granted" else None

    def put(self, kind: ChangeKind, allocation: Allocation) -> None:
        """Another allocation. Of two kinds the one written first counts, but no job enters before others leave."""
        self.kind = kind if kind is ChangeKind.ENTER else min(self.kind, kind)
        self.allocation = allocation

    def change(self) -> StatusChange | None:
        """The change, or None where all stays as it is."""
        status = self.job.status
        kind = self.kind
        if _same(self.allocation, status.allocation):
            rest = (
                _same(self.marks, status.marks)
                and _same(self.late, status.late)
                and _same(self.estimates, status.estimates)
                and _same(self.restriction, status.restriction)
            )
            if rest and _same(self.queue, status.queue):
                return None
            kind = self._kind_of_waiting() if rest else ChangeKind.QUEUE
        return StatusChange(
            self.job,
            kind,
            self.allocation,
            self.queue,
            self.marks,
            self.late,
            self.estimates,
            self.restriction,
            self.preemptions,
        )

    def _kind_of_waiting(self) -> ChangeKind:
        before, after = self.job.status.queue, self.queue
        if before is None or after is None or before.reason != after.reason:
            return ChangeKind.QUEUE
        return ChangeKind.ESTIMATE if before.told == after.told else ChangeKind.POSITION


def _same(one: object, other: object) -> bool:
    """Equality, which most often is identity: pydantic compares field by field."""
    return one is other or one == other
