"""The phase: one word for the state of a job, derived from everything else."""

from synergy_api.resources.training_job import Phase, ProfileStatus
from synergy_operator.run.step import Stage

_TRAINING: dict[Stage, Phase] = {"Starting": "Starting", "Running": "Running", "Leaving": "Yielding"}


def phase_in_run(stage: Stage, *, profiling: bool) -> Phase:
    """The phase while a run is open."""
    return "Profiling" if profiling else _TRAINING[stage]


def phase_between_runs(
    *, valid: bool, suspended: bool, profile: ProfileStatus, waits: bool = False, deferred: bool = False
) -> Phase:
    """The phase while no run is open.

    The planner considers jobs in Queued, and jobs in Profiling with a request. `waits` means for other jobs, `deferred`
    that an identical job is measured instead of this one.
    """
    if suspended:
        return "Suspended"
    if not valid or waits:
        return "Pending"
    if profile.state in ("Complete", "Skipped"):
        return "Queued"
    return "Profiling" if profile.request is not None or deferred else "Pending"
