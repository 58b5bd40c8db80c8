"""What a user says of a job beside its program."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict


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
