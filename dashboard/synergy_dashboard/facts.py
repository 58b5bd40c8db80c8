"""What the history consists of: runs, reasons for waiting, resizes, progress and use.

All times are in seconds since the epoch, CPU in milli-CPU, memory in bytes, speeds in steps per second. The recorder
makes these values, the store keeps them, the API reads them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """A TrainingJob, also after it was deleted. The key is `uid`."""

    uid: str
    namespace: str
    name: str
    tenant: str
    created_s: float
    gpus: int
    gpu_types: tuple[str, ...]
    """The types that it may use; empty: any."""
    steps: int
    weight: float
    fingerprint: str = ""
    """What identical jobs have in common; empty while unknown."""
    phase: str = "Pending"
    finished_s: float | None = None
    deleted_s: float | None = None
    steps_done: int = 0
    preemptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one node gives a run."""

    node: str
    gpus: int
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFact:
    """One run of a job: from the grant of its place until it holds nothing. The key is (`uid`, `run`)."""

    uid: str
    run: int
    purpose: str
    """Train or Profile."""
    gpu_type: str
    gpus: int
    shares: tuple[Share, ...]
    """As granted first; `ResizeFact` has later ones."""
    granted_s: float
    started_s: float | None = None
    """When the last worker ran; None before that, or if none ever did."""
    revoked_s: float | None = None
    revoked_reason: str = ""
    """For whom and by which rule, in the extender's words."""
    ended_s: float | None = None
    outcome: str = ""
    """Yielded, Succeeded, Failed, Evicted or Profiled; Unknown where nobody saw it end."""
    reason: str = ""
    steps_per_s: float = 0.0
    """As the plan expects."""
    proportional_steps_per_s: float = 0.0
    partners: tuple[str, ...] = ()
    seen: bool = True
    """False where the recorder was away for all of it: only its number is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeFact:
    """CPU and memory of a run changed. The key is (`uid`, `run`, `at_s`)."""

    uid: str
    run: int
    at_s: float
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFact:
    """For how long a job gave one reason for not running. The key is (`uid`, `since_s`)."""

    uid: str
    since_s: float
    until_s: float | None
    reason: str
    message: str
    position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A job's progress at a moment. The key is (`uid`, `at_s`)."""

    uid: str
    at_s: float
    steps: int
    steps_per_s: float
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UseSample:
    """GPUs of one type at a moment. The key is (`at_s`, `gpu_type`)."""

    at_s: float
    gpu_type: str
    gpus: int
    gpus_given: int
    gpus_wanted: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a tenant's jobs of one namespace had in a time. Hours of GPUs; waiting in hours of jobs."""

    tenant: str
    namespace: str
    gpu_hours: float
    waiting_hours: float
    gained_gpu_hours: float
    """GPU-hours that tuning saved: the same steps at the GPU-proportional share would have taken these more."""
    runs: int
    preemptions: int


class History(Protocol):
    """What the store answers. `namespaces` None means all; times select what overlaps [`since_s`, `until_s`)."""

    def job(self, namespace: str, name: str) -> JobFact | None:
        """The newest job of that name."""
        ...

    def jobs(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Sequence[JobFact]:
        """Jobs that existed, by creation."""
        ...

    def runs(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None
    ) -> Sequence[tuple[JobFact, RunFact]]:
        """Runs that held GPUs, by their grant."""
        ...

    def runs_of(self, uid: str) -> Sequence[RunFact]:
        """All runs of a job, by number."""
        ...

    def resizes_of(self, uid: str) -> Sequence[ResizeFact]:
        """By time."""
        ...

    def resizes(self, since_s: float, until_s: float) -> Sequence[ResizeFact]:
        """Of all jobs, by time."""
        ...

    def waits_of(self, uid: str) -> Sequence[WaitFact]:
        """By time."""
        ...

    def samples_of(self, uid: str, most: int = 500) -> Sequence[Sample]:
        """At most `most`, evenly chosen, by time."""
        ...

    def use(self, since_s: float, until_s: float, most: int = 500) -> Sequence[UseSample]:
        """At most `most` moments, by time."""
        ...

    def usage(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Sequence[Usage]:
        """By tenant and namespace."""
        ...

    def first_s(self) -> float | None:
        """Since when the history is kept; None while it is empty."""
        ...
