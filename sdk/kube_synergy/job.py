"""A job for plain Python and for notebooks: each call waits for its answer."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from kube_synergy import aio, background
from kube_synergy.forecast import When
from kube_synergy.live.cluster import Where
from kube_synergy.live.following import LogLine
from kube_synergy.show.watch import Watch, watch
from kube_synergy.status import JobStatus
from synergy_api.resources.training_job import Phase
from synergy_view.why import Why

T = TypeVar("T")


class Job(Generic[T]):
    """A job of the cluster. `result()` returns a T where a function was submitted that does.

    A later job of the same name is another one. Each call opens its own connection, so there is nothing to close. All
    of them raise ForbiddenError, NotInstalledError, JobNotFoundError and UnreachableError.
    """

    def __init__(self, job: aio.Job[T]) -> None:
        self._job = job

    @property
    def name(self) -> str:
        """Its name."""
        return self._job.name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self._job.namespace

    @property
    def where(self) -> Where:
        """The cluster that it is in."""
        return self._job.where

    def __repr__(self) -> str:
        return repr(self._job)

    def status(self) -> JobStatus:
        """What it is doing now."""
        return background.run(self._job.status())

    def states(self) -> Iterator[JobStatus]:
        """Its status every second; the last one is that with which it has ended. Raises JobDeletedError."""
        return background.iterate(self._job.states())

    def wait(
        self,
        timeout_s: float | None = None,
        *,
        until: Phase | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> JobStatus:
        """Wait until the job has succeeded, or until it reaches the phase `until`; it may have left it by then.

        Arguments:
            timeout_s: seconds to wait at most; None: without end.
            until: a phase such as Running or Suspended.
            tell: is called with each new line about the job, such as `print`.

        Raises JobFailedError with the function's traceback, JobTimeoutError, JobDeletedError; ValueError if `until` is
        no phase.
        """
        return background.run(self._job.wait(timeout_s, until=until, tell=tell))

    def result(self, timeout_s: float | None = None) -> T:
        """What the function returned on rank 0, once the job has succeeded, as JSON has it: a tuple is a list.

        Raises NoResultError where it is not there, and all that `wait` raises.
        """
        return background.run(self._job.result(timeout_s))

    def log_lines(self, *, follow: bool = False, rank: int | None = None, tail: int | None = None) -> Iterator[LogLine]:
        """What the workers of all runs print whose pods still exist, oldest run first.

        Arguments:
            follow: go on with the newest run until its workers end.
            rank: only this worker.
            tail: the last lines of each worker only.
        """
        return background.iterate(self._job.log_lines(follow=follow, rank=rank, tail=tail))

    def logs(self, *, rank: int | None = None, tail: int | None = None) -> str:
        """The same as one text, with the run and the rank before each line where there are several workers."""
        return background.run(self._job.logs(rank=rank, tail=tail))

    def why(self) -> Why:
        """Why it waits, or where it runs: the one reason that counts, the jobs in its way, the next step."""
        return background.run(self._job.why())

    def forecast(self, *, draws: int = 20, seed: int = 0, horizon_s: float | None = None) -> When:
        """When it starts and ends, by a simulation of the cluster on this computer.

        Arguments:
            draws: draws of the jobs that may come.
            seed: of the draws.
            horizon_s: look so many seconds ahead at the most.

        A user who may not list nodes gets the estimate of the cluster's own extender.
        """
        return background.run(self._job.forecast(draws=draws, seed=seed, horizon_s=horizon_s))

    def suspend(self) -> None:
        """Hold it: it writes a checkpoint, leaves its GPUs and is not planned until it is resumed."""
        background.run(self._job.suspend())

    def resume(self) -> None:
        """Let it go on from its checkpoint."""
        background.run(self._job.resume())

    def delete(self) -> None:
        """Delete it and what it owns: its program, and the volume of `checkpoint_storage`."""
        background.run(self._job.delete())

    def watch(self) -> Watch:
        """Show the job until it has ended, and return at once.

        In a notebook this is a live widget (`kube-synergy[widget]`); elsewhere each new phase or
        reason is printed, and progress every 30 s.
        """
        return watch(self._job.states, repr(self))
