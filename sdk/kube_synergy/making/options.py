"""What a user says of a job beside its program."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from kube_synergy.errors import InvalidJobError
from synergy_core.model.names import not_there


class JobOptions(TypedDict, total=False):
    """Keyword arguments of `submit` and `manifests`, each a field of the TrainingJob."""

    image: Required[str]
    """Image that runs the program; it must have python3 (3.8 or newer) and what the program imports."""
    gpus: int
    """GPUs of the whole job; 1 by default."""
    steps: int
    """Training steps until the job is done, over all its runs. Give one of `steps`, `epochs` and `max_run_seconds`."""
    epochs: int
    """Passes over the data until the job is done."""
    max_run_seconds: int
    """Seconds of training on GPUs until the job is done."""
    name: str
    """Name of the job; by default the program's, with a random end."""
    gpu_types: Sequence[str]
    """GPU types that it may use; by default any."""
    tenant: str
    """Tenant that it counts for."""
    after: Sequence[str]
    """Names of jobs of the same namespace that must succeed before; `spec` can say more of each."""
    array: int
    """Jobs to make of this one. Each has its index in SYNERGY_ARRAY_INDEX."""
    max_parallel: int
    """Of these, how many exist unfinished at a time; by default all."""
    profile: Literal["Auto", "Sweep", "Skip"]
    """`Skip` schedules it at the GPU-proportional share, without profile runs; `Auto` by default."""
    checkpoints: str
    """An existing PersistentVolumeClaim, mounted at /checkpoints."""
    checkpoint_storage: str
    """Size, such as 10Gi, of a new volume at /checkpoints. The job owns it: it is deleted with the job."""
    env: Mapping[str, str]
    """Environment variables of the program."""
    spec: Mapping[str, Any]
    """Further fields of `spec`, as a manifest has them. They win over the other arguments. The first container of
    `template` and lists of volumes, mounts and variables are merged, other lists are replaced."""


def checked(options: JobOptions) -> JobOptions:
    """The options. Raises InvalidJobError for one that would be passed over, or taken for something else: Python checks
    no types when it runs."""
    for name in options:
        if name not in JobOptions.__annotations__:
            raise InvalidJobError(f"argument {not_there(name, JobOptions.__annotations__)}")
    for name in ("gpu_types", "after"):
        value = options.get(name) or ()
        if isinstance(value, str) or not isinstance(value, Iterable) or not all(isinstance(one, str) for one in value):
            raise InvalidJobError(f"{name}: it is {value!r}; give a list of names")
    for name in ("env", "spec"):
        if not isinstance(options.get(name) or {}, Mapping):
            raise InvalidJobError(f"{name}: it is {options.get(name)!r}; give a dict")
    for key, value in (options.get("env") or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidJobError(f"env: {key!r} is {value!r}; names and values are strings")
    return options
