"""Results of the two Jobs of a pair: what each job kept of its speed, and which reference the new job resembles."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from synergy_api.parts.usage import MOST_PAIRS, ReferenceMatch, ReferencePair
from synergy_api.resources.training_job import ProfileStatus, TrainingJobSpec
from synergy_api.timestamps import format_time
from synergy_core.colocation.predictors.fingerprint import fingerprint
from synergy_core.profiling.together import LEAST_SECONDS, LEAST_STEPS, speeds_together
from synergy_operator.profile.harvest import result_of
from synergy_operator.profile.pairs.references import (
    matrix_on,
    measured_on,
    model_on,
    reference_table,
    usage_on,
)
from synergy_operator.profile.result import MeasuredPoint, MeasurementFailure, SeenTogether, without_middle
from synergy_operator.views.batch_job import BatchJobView
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView

_LONGEST_PROBLEM: Final = 512
_MOST_KEPT: Final = 4.0
Side = tuple[BatchJobView, PodView | None]
"""A Job of a pair with its pod."""


@dataclass(frozen=True, slots=True)
class PairRun:
    """The run that measures pairs: whose, on which GPU type, and seen at which Unix time."""

    observed: Observed
    spec: TrainingJobSpec
    gpu_type: str
    now: float


def with_pair_results(profile: ProfileStatus, run: PairRun, found: tuple[Side, ...]) -> ProfileStatus:
    """The profile with the pairs of the open run of which both Jobs have ended, and with what follows from them."""
    known = {pair.model for pair in profile.pairs if pair.gpu_type == run.gpu_type}
    new = [
        _pair(own, other, profile, run)
        for own, other in _ended(found)
        if own[0].pair is not None and own[0].pair.model not in known
    ]
    return with_pairs(profile, run.observed, run.spec, new) if new else profile


def with_pairs(
    profile: ProfileStatus, observed: Observed, spec: TrainingJobSpec, new: Iterable[ReferencePair]
) -> ProfileStatus:
    """The profile with these pairs too, and the reference that the job now resembles on each GPU type."""
    pairs = [*profile.pairs, *new][-MOST_PAIRS:]
    return profile.model_copy(update={"pairs": pairs, "matches": _matches(profile, pairs, observed, spec)})


def set_aside(profile: ProfileStatus, run: PairRun, reference: tuple[str, str], problem: str) -> ProfileStatus:
    """The profile with a pair that could not be run, so that it is not tried again. `reference` is name and model."""
    name, model = reference
    failed = ReferencePair(
        gpu_type=run.gpu_type,
        model=model,
        own_model=model_on(run.gpu_type, run.spec, profile.fingerprint),
        reference=name,
        problem=without_middle(problem, _LONGEST_PROBLEM),
        measured_at=format_time(run.now),
    )
    return with_pairs(profile, run.observed, run.spec, [failed])


def _ended(found: tuple[Side, ...]) -> list[tuple[Side, Side]]:
    """The own Job and the reference's Job of each pair of which both have a result."""
    sides: dict[str, dict[bool, Side]] = {}
    for job, pod in sorted(found, key=lambda one: (one[0].created_at, one[0].name)):
        if job.pair is not None and result_of(job, pod) is not None:
            sides.setdefault(job.pair.reference, {})[job.pair.is_reference] = (job, pod)
    return [(both[False], both[True]) for both in sides.values() if len(both) == 2]


def _pair(own: Side, other: Side, profile: ProfileStatus, run: PairRun) -> ReferencePair:
    gpu_type = run.gpu_type
    side = own[0].pair
    name, model = (side.reference, side.model) if side is not None else ("", "")
    reference = next((one.view() for one in run.observed.references if one.name == name), None)
    theirs = reference.status.profile if reference is not None else None
    kept, problem, seconds = _kept(
        result_of(*own), result_of(*other), _best(gpu_type, profile), _best(gpu_type, theirs), name
    )
    usage = usage_on(gpu_type, reference.spec, theirs) if reference is not None and reference.spec is not None else None
    return ReferencePair(
        gpu_type=gpu_type,
        model=model,
        own_model=model_on(gpu_type, run.spec, profile.fingerprint),
        reference=name,
        kept=kept[0] if kept is not None else None,
        reference_kept=kept[1] if kept is not None else None,
        usage=usage if kept is not None else None,
        seconds=round(seconds, 1),
        gpu_seconds=round(_held(own[1], other[1]), 1),
        problem=without_middle(problem, _LONGEST_PROBLEM),
        measured_at=format_time(run.now),
    )


def _kept(
    own: MeasuredPoint | MeasurementFailure | None,
    other: MeasuredPoint | MeasurementFailure | None,
    best: float | None,
    others_best: float | None,
    name: str,
) -> tuple[tuple[float, float] | None, str, float]:
    """What both kept, or the problem; and the seconds in which both trained."""
    for who, result in (("the job", own), (f"reference {name}", other)):
        if isinstance(result, MeasurementFailure):
            return None, f"{who}: {result.problem}", 0.0
    if best is None or others_best is None:
        return None, f"reference {name} has no matrix on the GPU type any more", 0.0
    seen = [result.together for result in (own, other) if isinstance(result, MeasuredPoint)]
    marks = [one for one in seen if isinstance(one, SeenTogether)]
    if len(marks) < 2:
        return None, "the image's harness tells no moments of steps: upgrade the profiler image", 0.0
    if marks[0].gpus and marks[1].gpus and not set(marks[0].gpus) & set(marks[1].gpus):
        return None, "the two came to different GPUs: correct sharing.preference of the GPUPool", 0.0
    speeds = speeds_together(marks[0].marks, marks[1].marks)
    if speeds is None:
        short = f"they trained together for less than {LEAST_SECONDS:g} s or {LEAST_STEPS:g} steps"
        return None, f"{short}: raise profiling.referencePairSeconds", 0.0
    kept = (speeds.speeds[0] / best, speeds.speeds[1] / others_best)
    return (_rounded(kept[0]), _rounded(kept[1])), "", speeds.seconds


def _rounded(kept: float) -> float:
    return round(min(_MOST_KEPT, kept), 4)


def _best(gpu_type: str, profile: ProfileStatus | None) -> float | None:
    """The job's best speed alone on the GPU type, in steps per second."""
    matrix = matrix_on(gpu_type, profile)
    return max(map(max, matrix.steps_per_second)) if matrix is not None else None


def _held(*pods: PodView | None) -> float:
    """Seconds from the first pod's start to the last one's end: for so long the pair had its GPU."""
    there = [pod.main for pod in pods if pod is not None]
    starts = [one.started_at for one in there if one.started_at is not None]
    ends = [one.finished_at for one in there if one.finished_at is not None]
    return max(0.0, max(ends) - min(starts)) if starts and ends else 0.0


def _matches(
    profile: ProfileStatus, pairs: list[ReferencePair], observed: Observed, spec: TrainingJobSpec
) -> list[ReferenceMatch]:
    """By GPU type with a measured pair and references that were measured beside each other."""
    found = []
    for gpu_type in sorted({pair.gpu_type for pair in pairs if pair.kept is not None}):
        measured = [pair for pair in pairs if pair.gpu_type == gpu_type and pair.kept is not None]
        table = reference_table(observed.profiles, gpu_type, model_on(gpu_type, spec, profile.fingerprint))
        known = measured_on(gpu_type, measured)
        if table is None or not set(known) & set(table.models):
            continue
        print_ = fingerprint(table, known)
        spent = sum(pair.gpu_seconds for pair in measured)
        count = max(len(measured), len(table.models))
        found.append(
            ReferenceMatch(
                gpu_type=gpu_type,
                model=print_.nearest,
                confidence=round(min(1.0, print_.confidence), 4),
                uncertainty=round(print_.uncertainty, 4),
                pairs=len(measured),
                references=count,
                gpu_seconds=round(spent, 1),
                saved_gpu_seconds=round((count - len(measured)) * spent / len(measured), 1),
            )
        )
    return found
