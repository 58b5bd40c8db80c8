"""Beside which reference job a new job is measured next, and with how much CPU and memory each."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from synergy_api.amounts import Amounts
from synergy_api.cluster.pods import least_requests
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.profile import SensitivityMatrix
from synergy_api.parts.sharing import GPUUsage
from synergy_api.parts.usage import MOST_PAIRS, ReferencePair
from synergy_api.quantity import byte_count
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_core.colocation.predictors.fingerprint import Kept, next_reference
from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.colocation.predictors.references import References
from synergy_operator.pods.template_check import template_problem
from synergy_operator.profile.curve import job_demand
from synergy_operator.views.job import JobView
from synergy_operator.views.known_profile import KnownProfile
from synergy_operator.views.observed import Observed
from synergy_operator.views.stored_job import Reference, StoredJob, UseBesideOthers

MOST_MODELS: Final = 64
"""In the table of references. Each job that was measured beside references is one, under its fingerprint if it names
no model."""
Profiles = Mapping[str, tuple[KnownProfile, ...]]


@dataclass(frozen=True, slots=True)
class NextPair:
    """A job and a reference that are to share a GPU. `own` and `others` are what each needs to be as fast as alone."""

    gpu_type: str
    reference: Reference
    model: str
    own: Amounts
    others: Amounts
    whole: Amounts
    """What the two ask for together, with one GPU. Of what is less than both need each gets its part."""


def reference_of(stored: StoredJob, job: JobView, tolerance_percent: int) -> Reference | None:
    """What others read of a job, which is kept as `stored`; None if it is no reference."""
    spec, profile = job.spec, job.status.profile
    if spec is None or not spec.sharing.reference or job.deleting or job.template_too_large:
        return None
    matrices = profile.matrices if profile is not None and spec.gpus == 1 else []
    least = _least(spec) if matrices else None
    uses = {one.gpu_type: _use(one, job, least, tolerance_percent) for one in matrices}
    known = {gpu_type: use for gpu_type, use in uses.items() if use is not None}
    return Reference(job.name, known, tolerance_percent, stored)


def next_pair(
    observed: Observed, spec: TrainingJobSpec, profile: ProfileStatus, gpu_type: str | None = None
) -> NextPair | None:
    """The next pair to run, on this GPU type if one is given; None if none is wanted or nothing more is to be learnt.

    The job has a matrix on the type: what it keeps is a part of the speed in it.
    """
    wanted = observed.cluster.profiling.reference_pairs > 0 and len(profile.pairs) < MOST_PAIRS
    if not wanted or not spec.sharing.allowed or spec.gpus != 1:
        return None
    allowed = observed.cluster.allowed_types(spec.gpu_types)  # identical jobs may have been measured on others too
    matrices = sorted((one for one in profile.matrices if one.gpu_type in allowed), key=lambda one: one.gpu_type)
    pairs = (_next_on(matrix, observed, spec, profile) for matrix in matrices if gpu_type in (None, matrix.gpu_type))
    return next((pair for pair in pairs if pair is not None), None)


def model_on(gpu_type: str, spec: TrainingJobSpec, fingerprint: str) -> str:
    """The model that the job says it trains, otherwise its fingerprint: without a name it is a model of its own."""
    return next((use.model for use in spec.sharing.usage if use.gpu_type == gpu_type and use.model), fingerprint)


def usage_on(gpu_type: str, spec: TrainingJobSpec, profile: ProfileStatus | None) -> GPUUsage | None:
    """What a job does to a GPU alone: as measured, otherwise as its spec says; of GPU memory the larger. None if
    neither is known."""
    said = next((use for use in spec.sharing.usage if use.gpu_type == gpu_type), None)
    seen = next((use for use in (profile.usage if profile else []) if use.gpu_type == gpu_type), None)
    load = seen or said
    if load is None:
        return None
    memory = max(byte_count(said.memory) if said else 0, seen.memory_bytes if seen else 0, 1)
    return GPUUsage(
        gpu_type=gpu_type,
        compute=load.compute,
        bandwidth=load.bandwidth,
        memory=str(memory),
        model=said.model if said else "",
        configuration=said.configuration if said else "",
        source="Utilization" if load.source == "Utilization" else "Counters",
        utilization=load.utilization,
        memory_utilization=load.memory_utilization,
    )


def matrix_on(gpu_type: str, profile: ProfileStatus | None) -> SensitivityMatrix | None:
    """The job's matrix on a GPU type; None if there is none."""
    return next((one for one in (profile.matrices if profile else []) if one.gpu_type == gpu_type), None)


def reference_table(profiles: Profiles, gpu_type: str, without: str) -> References | None:
    """The models that profile runs of the cluster have measured beside each other, but for one; None if there are
    none. Of many those that were measured beside most others: the time to choose one grows with their cube."""
    found: dict[tuple[str, str], list[float]] = {}
    for pair in _published(profiles):
        if pair.gpu_type == gpu_type and pair.own_model and without not in (pair.own_model, pair.model):
            for key, kept in (
                ((pair.own_model, pair.model), pair.kept),
                ((pair.model, pair.own_model), pair.reference_kept),
            ):
                if kept is not None:
                    found.setdefault(key, []).append(min(1.0, kept))
    if not found:
        return None
    means = {key: sum(kept) / len(kept) for key, kept in found.items()}
    partners = Counter(name for key in means for name in key)
    names = sorted(partners, key=lambda name: (-partners[name], name))[:MOST_MODELS]
    return References.of(PairTable(means), sorted(names))


def measured_on(gpu_type: str, pairs: Iterable[ReferencePair]) -> dict[str, Kept]:
    """What the job and each reference kept, by the reference's model; NaN for those that could not be measured."""
    nan = float("nan")
    return {
        pair.model: (
            nan if pair.kept is None else pair.kept,
            nan if pair.reference_kept is None else pair.reference_kept,
        )
        for pair in pairs
        if pair.gpu_type == gpu_type
    }


def _published(profiles: Profiles) -> Iterable[ReferencePair]:
    for known in profiles.values():
        for one in known:
            if one.spec is not None:
                yield from one.spec.pairs


def _next_on(
    matrix: SensitivityMatrix, observed: Observed, spec: TrainingJobSpec, profile: ProfileStatus
) -> NextPair | None:
    kind, cluster = matrix.gpu_type, observed.cluster
    nodes = [node for node in cluster.by_type.get(kind, ()) if node.schedulable and node.clients > 1]
    usage = usage_on(kind, spec, profile)
    if not nodes or usage is None:
        return None
    tolerance = cluster.profiling.demand_tolerance_percent
    own_model = model_on(kind, spec, profile.fingerprint)
    own = _needs(matrix, tolerance)
    available: dict[str, NextPair] = {}
    for reference in observed.references:
        pair = _with(reference, (own, usage), nodes)
        if pair is not None and pair.model != own_model:
            available.setdefault(pair.model, pair)
    table = reference_table(observed.profiles, kind, own_model)
    most = cluster.profiling.reference_pairs
    chosen = next_reference(table, measured_on(kind, profile.pairs), available.keys(), most=most)
    return None if chosen is None else available[chosen]


def _with(reference: Reference, new: tuple[Amounts, GPUUsage], nodes: Iterable[NodeCapacity]) -> NextPair | None:
    """The pair with this reference; None if no node can run it. `new` is what the new job needs and uses."""
    own, usage = new
    theirs = reference.uses.get(usage.gpu_type)
    if theirs is None:
        return None
    memory = (byte_count(usage.memory), theirs.gpu_memory_bytes)
    node = next((node for node in nodes if _fits(memory, node)), None)
    if node is None:
        return None
    return NextPair(usage.gpu_type, reference, theirs.model, own, theirs.needs, _whole(own, theirs.needs, node))


def _use(
    matrix: SensitivityMatrix, job: JobView, least: Amounts | None, tolerance_percent: int
) -> UseBesideOthers | None:
    """None if the job names no model on the GPU type, or if what it needs there is less than its template's `least`;
    also if values of its status are out of range."""
    if job.spec is None or least is None:
        return None
    try:
        usage, needs = usage_on(matrix.gpu_type, job.spec, job.status.profile), _needs(matrix, tolerance_percent)
        if usage is None or not usage.model or not least.fits(needs):
            return None
        return UseBesideOthers(usage.model, byte_count(usage.memory), needs)
    except ValueError:  # it would end the operator's watch of all jobs
        return None


def _least(spec: TrainingJobSpec) -> Amounts | None:
    """What a pod of the job must have at least. None if no pod can be made: the template was broken since the job was
    measured, or has no command to put the harness before, as that of a managed job."""
    if template_problem(spec.template):
        return None
    pod = spec.template["spec"]
    if not pod["containers"] or not pod["containers"][0].get("command"):
        return None
    try:
        return least_requests(pod)._replace(gpus=0)
    except ValueError:
        return None


def _needs(matrix: SensitivityMatrix, tolerance: int) -> Amounts:
    demand = job_demand(matrix, 1, tolerance)
    return Amounts(1, demand.cpu_millis, demand.memory_bytes)


def _whole(own: Amounts, others: Amounts, node: NodeCapacity) -> Amounts:
    """The CPU of both, and of memory no more than a GPU's part of the node, unless one of them needs that much.

    Where the memory model does not apply, a job's demand is all that it was measured with.
    """
    part = node.amounts.part(1, node.gpus)
    most = max(part.memory_bytes, own.memory_bytes, others.memory_bytes)
    both = own.plus(others)._replace(gpus=1)
    return both._replace(memory_bytes=min(both.memory_bytes, most)).at_most(node.amounts)


def _fits(memory: tuple[int, int], node: NodeCapacity) -> bool:
    """GPU memory of both fits the GPU, and that of each what MPS leaves a client."""
    client = node.gpu_memory_bytes // node.replicas
    return not node.gpu_memory_bytes or (sum(memory) <= node.gpu_memory_bytes and max(memory) <= client)
