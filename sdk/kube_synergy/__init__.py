"""Submit training from Python, and ask a job of the cluster what it does.

    import kube_synergy

    def train(rate):
        ...
        return {"loss": loss}

    job = kube_synergy.submit(train, args=[0.1], image="registry.example.com/pytorch:2", gpus=2, steps=5000)
    job.watch()
    job.result()

The cluster, the context and the namespace are those of kubectl. `kube_synergy.aio` has the same with coroutines.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

from kube_synergy import aio, background
from kube_synergy.errors import (
    ForbiddenError,
    InvalidJobError,
    JobDeletedError,
    JobFailedError,
    JobNotFoundError,
    JobTimeoutError,
    NameTakenError,
    NoResultError,
    NotInstalledError,
    SynergyError,
    UnreachableError,
)
from kube_synergy.forecast import Range, When
from kube_synergy.job import Job
from kube_synergy.live.following import LogLine
from kube_synergy.making.options import JobOptions
from kube_synergy.making.submission import submission_of
from kube_synergy.status import JobStatus
from synergy_view.why import Why

__all__ = [
    "ForbiddenError",
    "InvalidJobError",
    "Job",
    "JobDeletedError",
    "JobFailedError",
    "JobNotFoundError",
    "JobOptions",
    "JobStatus",
    "JobTimeoutError",
    "LogLine",
    "NameTakenError",
    "NoResultError",
    "NotInstalledError",
    "Range",
    "SynergyError",
    "UnreachableError",
    "When",
    "Why",
    "aio",
    "job",
    "manifests",
    "submit",
    "submit_manifest",
]

T = TypeVar("T")
Script = str | os.PathLike[str]


@overload
def submit(
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
def submit(
    program: Script,
    *,
    args: Sequence[Any] = ...,
    dry_run: bool = ...,
    kubeconfig: str | None = ...,
    context: str | None = ...,
    namespace: str | None = ...,
    **options: Unpack[JobOptions],
) -> Job[None]: ...
def submit(
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
    """Submit a function, or the path of a script, as a TrainingJob.

    A function is sent as source. It may use modules, what can be imported from them, plain values, and functions and
    classes of its own module. `args` and `kwargs` must be plain values: None, bool, numbers, str, bytes, and lists,
    tuples, sets and dicts of these. What it returns comes back as JSON, at most 512 KiB.

    Arguments:
        program: a function defined with `def`, or the path of a Python script.
        args: positional arguments of the function, or words of the script's command line.
        kwargs: keyword arguments of the function.
        dry_run: let the API server check the job and create nothing.
        kubeconfig: file that names the cluster; by default $KUBECONFIG, else ~/.kube/config.
        context: context of that file; by default its current one.
        namespace: by default the context's.
        options: fields of the TrainingJob, see `JobOptions`; `image` is needed, and `steps` as for a manifest.

    Raises InvalidJobError naming what to change, NameTakenError, ForbiddenError, NotInstalledError, UnreachableError.
    """
    given = submission_of(aio.program_of(program, args, kwargs), options)
    return Job(background.run(aio.created(given, kubeconfig, context, namespace, dry_run=dry_run)))


def submit_manifest(
    manifest: Mapping[str, Any],
    *,
    dry_run: bool = False,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> Job[None]:
    """Submit a TrainingJob as a YAML file has it. The namespace that it names wins.

    Raises what `submit` raises.
    """
    return Job(
        background.run(
            aio.submit_manifest(manifest, dry_run=dry_run, kubeconfig=kubeconfig, context=context, namespace=namespace)
        )
    )


def manifests(
    program: Callable[..., Any] | Script,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    **options: Unpack[JobOptions],
) -> list[dict[str, Any]]:
    """The objects that `submit` would create: the TrainingJob first, then what it would own. It does not contact a
    cluster. Raises InvalidJobError."""
    return submission_of(aio.program_of(program, args, kwargs), options).manifests


def job(
    name: str, *, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None
) -> Job[Any]:
    """A job that is there already. Raises JobNotFoundError; InvalidJobError for what cannot be a name."""
    return Job(background.run(aio.job(name, kubeconfig=kubeconfig, context=context, namespace=namespace)))
