"""From files or objects to a workload."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from synergy_simulator.engine.sharing.truth import BUILT_IN, Usages, read_usages
from synergy_simulator.inputs.clusters import Cluster, read_cluster, shared
from synergy_simulator.inputs.errors import SettingError
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import TraceJob, read_trace, trace_of
from synergy_simulator.workloads.generator import Split, with_models
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload, with_usages

File: TypeAlias = str | PathLike[str]
Trace: TypeAlias = File | Sequence[TraceJob] | Sequence[Mapping[str, object]] | Any
"""A file; jobs; rows with the native table's columns; or a pandas DataFrame of them."""

USUAL_SPLIT: Final = Split(20, 70, 10)


def load(
    trace: Trace,
    profiles: File | ProfileTable | None = None,
    cluster: File | Cluster | None = None,
    *,
    jobs: tuple[int, int] | None = None,
    split: Split = USUAL_SPLIT,
    seed: int = 0,
    usage: File | Usages | None = None,
    unconsolidated: bool = False,
    share: bool = False,
) -> Workload:
    """Read the inputs, each a file or an object, and join them to a workload.

    Args:
        trace: jobs with `job_id`, `arrival_s` (seconds), `gpus`, `model`, and `steps` or `duration_s` (seconds).
        profiles: matrices, or `built-in`. Without, no job is sensitive to CPU and memory.
        cluster: pools of nodes; it has to be given.
        jobs: the window (first, behind the last) of the trace's jobs; None: all.
        split: parts of image, language and speech models drawn for jobs whose trace names none (Synergy, section 5.1).
        seed: of what is drawn.
        usage: what models do to a GPU, or `built-in`; jobs of these models may share GPUs.
        unconsolidated: jobs on more nodes than they need are as slow as the profiles say.
        share: let two jobs share a GPU of any pool.

    Raises:
        InputError: bad input; one line that names file, line and field.
        SettingError: a setting does not go with the inputs.
    """
    if cluster is None:
        raise SettingError("cluster", "is missing; give a file, or an object such as homogeneous(nodes=4)")
    pools = cluster if isinstance(cluster, Cluster) else read_cluster(Path(cluster))
    table = profiles if profiles is None or isinstance(profiles, ProfileTable) else profiles_of(profiles)
    told = _jobs(trace)
    if jobs is not None:
        if jobs[1] > len(told):
            raise SettingError("jobs", f"{jobs[0]}:{jobs[1]} goes past the {len(told)} jobs of the trace")
        told = told[slice(*jobs)]
    if table is not None:
        told = with_models(told, split, table.models, seed=seed)
    if unconsolidated and (table is None or not table.spread):
        raise SettingError("unconsolidated", "the profiles have no speeds of types that end in _unconsolidated")
    workload = build_workload(told, table, shared(pools) if share else pools, unconsolidated=unconsolidated)
    if usage is None:
        return workload
    return with_usages(workload, usage if isinstance(usage, Mapping) else _usages(usage))


def profiles_of(name: File) -> ProfileTable:
    """The built-in table, or a file's. Raises InputError."""
    return built_in_profiles() if name == "built-in" else read_profiles(Path(name))


def _usages(name: File) -> Usages:
    return BUILT_IN if name == "built-in" else read_usages(Path(name))


def _jobs(trace: Trace) -> list[TraceJob]:
    if isinstance(trace, str | PathLike):
        return read_trace(Path(trace))
    rows = trace.to_dict("records") if hasattr(trace, "to_dict") else list(trace)
    if rows and isinstance(rows[0], TraceJob):
        return sorted(rows, key=lambda job: job.arrival_s)
    return trace_of(rows)
