"""What failures leave in a job's accounting: the nodes where they happened, and what counts against backoffLimit.

A failure no longer counts once the job has trained successfully since.
"""

from typing import Final

from synergy_api.parts.progress import Progress
from synergy_api.parts.service import MOST_NODE_FAILURES, NodeFailure, RunOutcome, ServiceStatus
from synergy_api.timestamps import format_time, parse_time

HEALTHY_SECONDS: Final = 600.0
"""A shorter run forgives nothing. A job that fails again and again must fail for good."""
UNREPORTED_SECONDS: Final = 3600.0
"""How long a run must train to forgive earlier failures if no report shows that its checkpoint advanced."""


def forgiven(service: ServiceStatus, run: int, progress: Progress | None, ended: float) -> ServiceStatus:
    """The accounting of a run that ended at `ended` (Unix seconds). A healthy run forgives all earlier failures.

    A run is healthy if it trained for ten minutes and its newest checkpoint is beyond that of the last failure. For a
    job that reports no checkpoints, one hour of training counts instead.
    """
    if not service.counted_failures or service.running_since is None:
        return service
    trained = ended - parse_time(service.running_since)
    saved = progress.checkpoint_steps if progress is not None and progress.run == run else 0
    healthy = trained >= UNREPORTED_SECONDS if not saved else saved > (service.failed_at_step or 0)
    if trained < HEALTHY_SECONDS or not healthy:
        return service
    return service.model_copy(update={"forgiven": service.failures, "failed_at_step": None})


def noted_failure(
    accounting: ServiceStatus, outcome: RunOutcome, progress: Progress | None, ended: float
) -> ServiceStatus:
    """The accounting of a run that was closed at `ended` (Unix seconds): with the checkpoint at which it failed, if it
    failed, and the nodes on which it did."""
    noted: dict[str, object] = {}
    if outcome.outcome == "Failed":
        noted["failed_at_step"] = progress.checkpoint_steps if progress is not None else 0
    if outcome.failed_on:
        at = format_time(ended)
        new = [NodeFailure(node=node, run=outcome.run, at=at) for node in outcome.failed_on]
        noted["node_failures"] = [*accounting.node_failures, *new][-MOST_NODE_FAILURES:]
    return accounting.model_copy(update=noted) if noted else accounting
