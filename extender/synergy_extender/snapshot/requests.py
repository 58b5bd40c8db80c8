"""A TrainingJob as the planner's Job."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.length import total_steps, trained_seconds
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.profile import ProfileRequest
from synergy_api.parts.progress import Progress
from synergy_api.parts.usage import Traffic
from synergy_api.parts.waiting import Slo
from synergy_api.quantity import LARGEST
from synergy_api.resources.training_job import TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.dimensions import job_fields, share_fields
from synergy_extender.cluster.measured_speeds import measured_speeds
from synergy_extender.cluster.placements import Sizes, level_speeds, spread_speeds
from synergy_extender.cluster.run_state import (
    attained_gpu_seconds,
    received_seconds,
    run_started,
    size_limits,
    spread_seconds,
    steps_done,
    waiting_seconds,
)
from synergy_extender.cluster.views import JobView
from synergy_extender.colocation.measured import measured_beside_others, measured_beside_references
from synergy_extender.colocation.usages import usages_of
from synergy_extender.snapshot.entitlements import Entitlement
from synergy_extender.snapshot.preemption_budgets import preempted_s
from synergy_extender.snapshot.scheduling_record import marks_of, started_s

_NOTHING = Progress()
_MOST_PAUSES = 0.95
_MOST = Amounts(0, *(LARGEST for _ in DIMENSIONS))
"""The largest amounts that the planner's process accepts: a larger number in one job would end the plan of all."""


def training(
    job: JobView,
    entitled: Entitlement,
    now: float,
    sizes: Sizes,
    *,
    nodes: tuple[str, ...] | None,
    running: core.Allocation | None,
) -> core.Job:
    """The job as it wants to train, or trains where `running` is given.

    `entitled` is what its tenant lets it ask for; `nodes` are those that its template admits, None for all; `sizes`
    those of the cluster's nodes. Raises FieldError if the spec or the accounting of its runs contradicts itself.
    """
    spec = job.spec
    marks = marks_of(job)
    deadline = _deadline(spec.slo)
    tensors, progress = _tensors(job.status), job.status.progress or _NOTHING
    traffic = job.status.profile.traffic if job.status.profile is not None else None
    far = spread_speeds(progress.placements, spec.gpus, sizes)
    return core.Job(
        name=str(job.key),
        gpus=spec.gpus,
        arrival_s=job.created,
        weight=entitled.weight,
        tenant=entitled.tenant,
        gpu_types=tuple(spec.gpu_types),
        profiles=job.profiles,
        measured=measured_speeds(job),
        steps_total=total_steps(spec, job.status),
        steps_done=steps_done(job),
        seconds_left=_seconds_left(job),
        pause_share=_pause_share(progress),
        attained_gpu_s=attained_gpu_seconds(job, now),
        waiting_s=waiting_seconds(job, now),
        started_s=started_s(job),
        promoted_gpu_s=marks.promoted_gpu_seconds,
        promoted_waiting_s=marks.promoted_waiting_seconds,
        isolated_s=marks.isolated_seconds,
        isolated_steps=marks.isolated_steps,
        preemption_cost_s=_preemption_cost(progress),
        skew=_skew(tensors, traffic),
        spread_speed=min(far.values(), default=None),
        spread_speeds=far,
        level_speeds=level_speeds(progress.placements, spec.gpus, sizes),
        model=job.model,
        batch_size=spec.batch_size,
        model_bytes=_model_bytes(tensors, progress, traffic),
        overlap=None if traffic is None else traffic.overlap,
        run_started_s=None if running is None else run_started(job, now),
        received_s=received_seconds(job, now),
        received_spread_s=spread_seconds(job, now),
        sharing=spec.sharing.allowed,
        sharing_across_tenants=spec.sharing.across_tenants,
        min_throughput_fraction=spec.sharing.min_throughput_fraction,
        usage=usages_of(job),
        shared=measured_beside_others(job),
        priority=entitled.priority,
        urgent=entitled.urgent,
        preempted_s=preempted_s(job, now),
        beside_references=measured_beside_references(job),
        preemptible=entitled.preemptible,
        running=running,
        placement=spec.placement.lower(),  # type: ignore[arg-type]
        nodes=nodes,
        deadline_s=deadline if entitled.deadline else None,
        **job_fields(_bounds(job)),
    )


def _seconds_left(job: JobView) -> float | None:
    """Seconds that a job with spec.maxRunSeconds still trains."""
    limit = job.spec.max_run_seconds
    return None if limit is None else max(0.0, limit - trained_seconds(job.status))


def _pause_share(progress: Progress) -> float:
    """The part of its training in which the job has paused, in whole percents: plans stay as they are until it has
    changed by more than noise."""
    if progress.trained_seconds <= 0.0:
        return 0.0
    return min(_MOST_PAUSES, round(progress.paused_seconds / progress.trained_seconds, 2))


def _deadline(slo: Slo | None) -> float | None:
    try:
        return None if slo is None else parse_time(slo.deadline)
    except ValueError as error:
        raise core.FieldError("spec.slo.deadline", str(error)) from None


def _tensors(status: TrainingJobStatus) -> tuple[int, int] | None:
    """Bytes of the model's largest tensor and of all of them, as the job itself has said, else as its profile runs
    have; None where no job has."""
    for told in (status.progress, *(status.profile.points if status.profile is not None else ())):
        if told is not None and told.largest_tensor_bytes and told.model_bytes:
            return told.largest_tensor_bytes, told.model_bytes
    return None


def _skew(tensors: tuple[int, int] | None, traffic: Traffic | None) -> float:
    """The largest tensor's part of the model; of a job that tells none the largest message's part of all messages."""
    if tensors is not None:
        return tensors[0] / tensors[1]
    if traffic is not None and traffic.largest_message_bytes and traffic.message_bytes:
        return min(1.0, traffic.largest_message_bytes / traffic.message_bytes)
    return core.UNKNOWN_SKEW


def _model_bytes(tensors: tuple[int, int] | None, progress: Progress, traffic: Traffic | None) -> int | None:
    """The bytes that all-reduce sends around a ring in a step: as the job tells of its model, else as was seen of what
    its workers send, in its runs or in its profile run.

    What runs send has two digits: plans stay as they are until it has changed by more than noise."""
    if tensors is not None:
        return tensors[1]
    sent, ranks = progress.sent_bytes_per_step, progress.world_size
    if sent is not None and ranks is not None:
        return max(1, int(float(f"{sent * ranks / (2 * (ranks - 1)):.2g}")))
    return None if traffic is None else traffic.model_bytes


def _preemption_cost(progress: Progress) -> float:
    """Seconds in which the job would hold GPUs without a step for being preempted: it saves, and later starts anew."""
    return (progress.save_seconds or 0.0) + (progress.resume_seconds or 0.0)


_Bounds = tuple[int, int | None]


def _bounds(job: JobView) -> dict[str, _Bounds]:
    """The least and the most of each dimension that the whole job can have: what its spec says, and what an open run's
    pods can be resized to, which is stronger."""
    low, high, least, limits = job.spec.resources.min, job.spec.resources.max, _least(job), size_limits(job)
    found: dict[str, _Bounds] = {}
    for one in DIMENSIONS:
        asked, bound = getattr(low, one.spec_field), getattr(high, one.spec_field)
        at_least = max(getattr(least, one.field), one.parse(asked) if asked is not None else 0)
        bounds: _Bounds = (at_least, one.parse(bound) if bound is not None else None)
        found[one.field] = bounds if limits is None else _narrowed(bounds, *limits.bounds(one.field))
    return found


def _narrowed(bounds: _Bounds, least: int | None, most: int | None) -> _Bounds:
    low, high = bounds
    if least is not None:
        low, high = max(low, least), None if high is None else max(high, least)
    if most is not None:
        low, high = min(low, most), most if high is None else min(high, most)
    return low, high


def _least(job: JobView) -> Amounts:
    """What the whole job needs for the containers beside the first: no worker's share may be too small for them."""
    spec, least = job.spec, job.least
    size = spec.gpus_per_worker or spec.gpus
    return least.without_gpus().part(spec.gpus, size, up=True).at_most(_MOST)


def profiling(job: JobView, tenant: str, request: ProfileRequest, nodes: tuple[str, ...] | None) -> core.Job:
    """The place that the job's profile series asks for: on one node, with a fixed demand."""
    return core.Job(
        name=str(job.key),
        gpus=request.gpus,
        arrival_s=job.created,
        tenant=tenant,
        gpu_types=(request.gpu_type,),
        purpose="profile",
        preemptible=False,
        placement="consolidate",
        nodes=nodes,
        **job_fields({name: (amount, amount) for name, amount in Amounts.of(request).fields.items()}),
    )


def running_profile(job: JobView, tenant: str, allocation: Allocation) -> core.Job:
    """A profile series that has its place: it keeps exactly that."""
    total = reduce(Amounts.plus, map(Amounts.of, allocation.workers), NOTHING)
    request = ProfileRequest(gpu_type=allocation.gpu_type, gpus=total.gpus, **total.fields)
    return replace(profiling(job, tenant, request, None), running=held(job, allocation))


def held(job: JobView, allocation: Allocation, partners: tuple[str, ...] = ()) -> core.Allocation:
    """What a run holds, as the planner's Allocation: what the plan last gave it, where that is still on its way too."""
    shared = allocation.shared_gpu
    return core.Allocation(
        job=str(job.key),
        gpu_type=allocation.gpu_type,
        workers=core_shares(allocation.planned or allocation.workers),
        steps_per_s=allocation.steps_per_second,
        proportional_steps_per_s=allocation.proportional_steps_per_second,
        estimated=allocation.estimated is True,
        spread=allocation.spread is True,
        shares_gpu_with=partners[0] if len(partners) == 1 else partners or None,
        delta_by_fractions=bool(partners) and shared is not None and shared.delta == "Fractions",
    )


def core_shares(shares: Sequence[NodeShare]) -> tuple[core.NodeShare, ...]:
    """An allocation's shares in the planner's words, in order of node."""
    return tuple(
        core.NodeShare(node=s.node, gpus=s.gpus, **share_fields(Amounts.of(s)))
        for s in sorted(shares, key=lambda share: share.node)
    )
