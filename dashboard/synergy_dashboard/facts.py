"""The facts of the history: jobs, runs, waiting times with reasons, resizes, progress and use of GPUs.

All times are in seconds since the epoch, CPU in milli-CPU, memory in bytes, speeds in steps per second. The recorder
makes these values, the store keeps them, the API reads them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """A TrainingJob, existing or deleted. The key is `uid`."""

    uid: str
    namespace: str
    name: str
    tenant: str
    created_s: float
    gpus: int
    gpu_types: tuple[str, ...]
    """GPU types that the job may use; empty: any."""
    steps: int
    """0 while nobody knows how many it has, and where it ends by time."""
    weight: float
    fingerprint: str = ""
    """Equal for identical jobs; empty while unknown."""
    phase: str = "Pending"
    finished_s: float | None = None
    deleted_s: float | None = None
    steps_done: int = 0
    preemptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of one node that a run has."""

    node: str
    gpus: int
    cpu_millis: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFact:
    """One run of a job, from the grant until it holds nothing. The key is (`uid`, `run`)."""

    uid: str
    run: int
    purpose: str
    """Train or Profile."""
    gpu_type: str
    gpus: int
    shares: tuple[Share, ...]
    """The shares as granted first. Later ones are in `ResizeFact`."""
    granted_s: float
    started_s: float | None = None
    """When the last worker began to run; None before that."""
    revoked_s: float | None = None
    revoked_reason: str = ""
    """The job that gets the GPUs and the rule, in the extender's words."""
    ended_s: float | None = None
    outcome: str = ""
    """Yielded, Succeeded, Failed, Evicted or Profiled; Unknown if the recorder did not see the end."""
    reason: str = ""
    steps_per_s: float = 0.0
    """The speed that the plan expects."""
    proportional_steps_per_s: float = 0.0
    partners: tuple[str, ...] = ()
    seen: bool = True
    """False if the recorder was down during the whole run: then only its number is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeFact:
    """CPU and memory of a run changed. The key is (`uid`, `run`, `at_s`)."""

    uid: str
    run: int
    at_s: float
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFact:
    """A time in which a job waited for one reason. The key is (`uid`, `since_s`)."""

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
    metrics: tuple[tuple[str, float], ...] = ()
    """What the script reported, such as its loss, by name."""


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
    """The use of a tenant's jobs in one namespace during a time: GPU-hours, and waiting in job-hours."""

    tenant: str
    namespace: str
    gpu_hours: float
    waiting_hours: float
    gained_gpu_hours: float
    """GPU-hours that tuning saved, compared with the same steps at the GPU-proportional share."""
    runs: int
    preemptions: int
    jobs: int = 0
    """Jobs that existed in that time."""
    finished: int = 0
    """Those of them that ended in it."""


class History(Protocol):
    """Queries of the history. `namespaces` None means all. Times select facts that overlap [`since_s`, `until_s`). Of
    more than `most` facts the answer is the newest."""

    def job(self, namespace: str, name: str) -> JobFact | None:
        """The newest job of that name."""
        ...

    def jobs(
        self,
        since_s: float,
        until_s: float,
        namespaces: Collection[str] | None,
        most: int,
        after: JobFact | None = None,
    ) -> Sequence[JobFact]:
        """Jobs that were created in that time, by creation and uid: the first `most`, or those that follow `after`."""
        ...

    def runs(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, RunFact]]:
        """Runs that held GPUs, by their grant. Of more than `most` those that hold some still, and that ended last."""
        ...

    def runs_of(self, uid: str) -> Sequence[RunFact]:
        """All runs of a job, by number."""
        ...

    def resizes_of(self, uid: str) -> Sequence[ResizeFact]:
        """By time."""
        ...

    def resizes(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, ResizeFact]]:
        """By time."""
        ...

    def resized(self, since_s: float, until_s: float, namespaces: Collection[str] | None) -> Collection[str]:
        """The uids of the jobs of which a run was resized."""
        ...

    def waits_of(self, uid: str) -> Sequence[WaitFact]:
        """By time."""
        ...

    def waits(
        self, since_s: float, until_s: float, namespaces: Collection[str] | None, most: int
    ) -> Sequence[tuple[JobFact, WaitFact]]:
        """Waits that began in that time, by their begin."""
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

    def first_s(self, namespaces: Collection[str] | None = None) -> float | None:
        """The earliest time in the history; None while it is empty."""
        ...
