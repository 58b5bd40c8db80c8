"""The same as `kube_synergy`, with coroutines: `await aio.submit(...)`, `await job.wait()`."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, Unpack, cast, get_args, overload

from kube_synergy.errors import InvalidJobError, JobDeletedError, JobFailedError, JobTimeoutError
from kube_synergy.forecast import When
from kube_synergy.live.cluster import Cluster, Where, check_names, connected
from kube_synergy.live.explained import explained
from kube_synergy.live.following import LogLine, log_lines, states, worker_pods
from kube_synergy.live.results import newest_record, value_of
from kube_synergy.live.submitting import create, delete, set_suspend
from kube_synergy.making.capture import program_of_function
from kube_synergy.making.options import JobOptions
from kube_synergy.making.program import Program, program_of_script
from kube_synergy.making.submission import Submission, submission_of, submission_of_manifest
from kube_synergy.remote.kube_synergy_run import MARK
from kube_synergy.status import JobStatus, status_of
from synergy_api.resources.training_job import Phase
from synergy_core.collector import collector_paused
from synergy_core.model.names import not_there
from synergy_kube import NotFound
from synergy_view.why import Why, why

__all__ = ["Job", "job", "program_of", "submit", "submit_manifest"]

T = TypeVar("T")
Script = str | os.PathLike[str]


class Job(Generic[T]):
    """A job of the cluster. `result()` returns a T where a function was submitted that does.

    A later job of the same name is another one. Each call opens its own connection, so there is nothing to close. All
    of them raise ForbiddenError, NotInstalledError, JobNotFoundError and UnreachableError.
    """

    def __init__(self, name: str, uid: str, where: Where) -> None:
        self.name, self.uid, self.where = name, uid, where

    @property
    def namespace(self) -> str:
        """Its namespace."""
        assert self.where.namespace is not None
        return self.where.namespace

    def __repr__(self) -> str:
        return f"<Job {self.namespace}/{self.name}>"

    async def status(self) -> JobStatus:
        """What it is doing now."""
        with explained():
            async with connected(self.where) as cluster:
                return status_of(await cluster.job(self.name, self.uid))

    async def states(self) -> AsyncIterator[JobStatus]:
        """Its status every second; the last one is that with which it has ended.

        Raises JobDeletedError.
        """
        with explained():
            async with connected(self.where) as cluster:
                async for one in self._states(cluster):
                    yield one

    async def wait(
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
        if until is not None and until not in get_args(Phase):
            raise ValueError(f"until: phase {not_there(str(until), get_args(Phase))}")
        told, last = "", None
        try:
            async with asyncio.timeout(timeout_s):
                with explained():
                    async with connected(self.where) as cluster:
                        async for last in self._states(cluster):
                            line = f"{last.phase}: {last.reason}"
                            if tell is not None and line != told:
                                tell(str(last))
                            told = line
                            if last.phase == until:
                                return last
                        return await self._ended(cluster, last)
        except TimeoutError as error:
            raise self._late(last, timeout_s or 0, until) from error

    async def result(self, timeout_s: float | None = None) -> T:
        """What the function returned on rank 0, once the job has succeeded, as JSON has it: a tuple is a list.

        Raises NoResultError where it is not there, and all that `wait` raises.
        """
        await self.wait(timeout_s)
        with explained():
            async with connected(self.where) as cluster:
                return cast(T, value_of(self.name, await newest_record(cluster, self.name, self.uid)))

    async def log_lines(
        self, *, follow: bool = False, rank: int | None = None, tail: int | None = None
    ) -> AsyncIterator[LogLine]:
        """What the workers of all runs print whose pods still exist, oldest run first.

        Arguments:
            follow: go on with the newest run until its workers end.
            rank: only this worker.
            tail: the last lines of each worker only.
        """
        with explained():
            async with connected(self.where) as cluster:
                await cluster.job(self.name, self.uid)
                pods = await worker_pods(cluster, self.name, self.uid, rank)
                async for line in log_lines(cluster, pods, follow=follow, tail=tail):
                    if not line.text.startswith(MARK):
                        yield line

    async def logs(self, *, rank: int | None = None, tail: int | None = None) -> str:
        """The same as one text, with the run and the rank before each line where there are several workers."""
        lines = [line async for line in self.log_lines(rank=rank, tail=tail)]
        several = len({(line.run, line.rank) for line in lines}) > 1
        return "\n".join(f"[run {line.run} rank {line.rank}] {line.text}" if several else line.text for line in lines)

    async def why(self) -> Why:
        """Why it waits, or where it runs: the one reason that counts, the jobs in its way, the next step."""
        with explained():
            async with connected(self.where) as cluster:
                asked = await cluster.job(self.name, self.uid)
                others, hidden = await cluster.visible_jobs()
                answer = why(asked, others, time.time())
                if hidden and answer.position is not None:
                    cluster.tell(hidden)
                return answer

    async def forecast(self, *, draws: int = 20, seed: int = 0, horizon_s: float | None = None) -> When:
        """When it starts and ends, by a simulation of the cluster on this computer.

        Arguments:
            draws: draws of the jobs that may come.
            seed: of the draws.
            horizon_s: look so many seconds ahead at the most.

        A user who may not list nodes gets the estimate of the cluster's own extender. What else is hidden from the
        user, and so not considered, goes to the log `kube_synergy`.
        """
        from kube_synergy.live.when import as_told, job_and_cluster, when  # noqa: PLC0415 - a second to import

        with explained():
            async with connected(self.where) as cluster:
                asked, present = await job_and_cluster(cluster, self.name, self.uid)
                for note in present.notes if present is not None else ():
                    cluster.tell(note)
        if present is None:
            return as_told(asked)

        def simulate() -> When:
            with collector_paused():
                return when(asked, present, draws=draws, seed=seed, horizon_s=horizon_s)

        return await asyncio.to_thread(simulate)

    async def suspend(self) -> None:
        """Hold it: it writes a checkpoint, leaves its GPUs and is not planned until it is resumed."""
        with explained():
            async with connected(self.where) as cluster:
                await set_suspend(cluster, self.name, self.uid, suspend=True)

    async def resume(self) -> None:
        """Let it go on from its checkpoint."""
        with explained():
            async with connected(self.where) as cluster:
                await set_suspend(cluster, self.name, self.uid, suspend=False)

    async def delete(self) -> None:
        """Delete it and what it owns: its program, and the volume of `checkpoint_storage`."""
        with explained():
            async with connected(self.where) as cluster:
                await delete(cluster, self.name, self.uid)

    async def _states(self, cluster: Cluster) -> AsyncIterator[JobStatus]:
        seen = False
        try:
            async for one in states(cluster, self.name, self.uid):
                seen = True
                yield status_of(one)
        except NotFound:
            if not seen:
                raise
            raise JobDeletedError(f"{self.namespace}/{self.name} was deleted before it ended") from None

    async def _ended(self, cluster: Cluster, last: JobStatus | None) -> JobStatus:
        assert last is not None, "a job has a state, or is not found"
        if last.phase == "Failed":
            record = await newest_record(cluster, self.name, self.uid) or {}
            raise JobFailedError(last.job, last.reason, last.message, record.get("traceback", ""))
        return last

    def _late(self, last: JobStatus | None, seconds: float, until: Phase | None) -> JobTimeoutError:
        goal = until or "Succeeded"
        now = f"; now it is {last}" if last is not None else ""
        return JobTimeoutError(f"{self.namespace}/{self.name} is not {goal} after {seconds:g} s{now}")


@overload
async def submit(
    program: Callable[..., T],
    *,
    args: Sequence[Any] = ...,
    kwargs: Mapping[str, Any] | None = ...,
    dry_run: bool = ...,
    kubeconfig: str | None = ...,
    context: str | None = ...,
    namespace: str | None = ...,
    **options: Unpack[JobOptions],
) -> Job[T]: ...
@overload
async def submit(
    program: Script,
    *,
    args: Sequence[Any] = ...,
    dry_run: bool = ...,
    kubeconfig: str | None = ...,
    context: str | None = ...,
    namespace: str | None = ...,
    **options: Unpack[JobOptions],
) -> Job[None]: ...
async def submit(
    program: Callable[..., Any] | Script,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    dry_run: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
    **options: Unpack[JobOptions],
) -> Job[Any]:
    """Submit a function, or the path of a script; see `kube_synergy.submit`."""
    return await created(
        submission_of(program_of(program, args, kwargs), options), kubeconfig, context, namespace, dry_run=dry_run
    )


async def submit_manifest(
    manifest: Mapping[str, Any],
    *,
    dry_run: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> Job[None]:
    """Submit a TrainingJob as a YAML file has it; see `kube_synergy.submit_manifest`."""
    return await created(submission_of_manifest(manifest), kubeconfig, context, namespace, dry_run=dry_run)


async def job(
    name: str, *, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None
) -> Job[Any]:
    """A job that is there already. Raises JobNotFoundError; InvalidJobError for what cannot be a name."""
    check_names(name=name, **({"namespace": namespace} if namespace else {}))
    with explained():
        where = Where.of(kubeconfig, context, namespace)
        async with connected(where) as cluster:
            found = await cluster.job(name)
    return Job(found.name, found.uid, where)


def program_of(program: Callable[..., Any] | Script, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Program:
    """The program of a function or a script. Raises InvalidJobError."""
    if callable(program):
        return program_of_function(program, args, kwargs)
    if kwargs:
        raise InvalidJobError("kwargs: a script has none; write its options into args, such as args=['--rate', 0.1]")
    return program_of_script(Path(program), [str(one) for one in args])


async def created(
    submission: Submission, kubeconfig: str | None, context: str | None, namespace: str | None, *, dry_run: bool
) -> Job[Any]:
    """The job of these objects, created."""
    with explained():
        where = Where.of(kubeconfig, context, namespace)
        async with connected(where) as cluster:
            created = await create(cluster, submission, dry_run=dry_run)
    return Job(created.name, created.uid, Where(kubeconfig, context, created.namespace))
