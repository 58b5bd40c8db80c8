"""What a job has had of the cluster: its runs and its attained service (`status.service`, of the operator)."""

from typing import Annotated, Final, Literal

from pydantic import Field

from synergy_api.base import ApiModel, Timestamp

LONGEST_EARLY: Final = 200
"""Characters of the reason that a script gives for ending training early."""


MOST_FAILED_ON: Final = 8
"""Nodes of one failed run at the most."""
MOST_NODE_FAILURES: Final = 16
"""Failures on nodes that a job keeps."""


class RunOutcome(ApiModel):
    """How a run ended."""

    run: Annotated[int, Field(ge=1, description="Number of the run.")]
    outcome: Annotated[
        Literal["Yielded", "Succeeded", "Failed", "Evicted", "Profiled"],
        Field(description="Evicted runs were lost with their node or evicted; they count as no failure."),
    ]
    step: Annotated[int | None, Field(ge=0, description="The step rank 0 left at, where it said so.")] = None
    save_seconds: Annotated[
        float | None,
        Field(
            ge=0,
            description="How long rank 0's last checkpoint took to write, where it said so; of one that was cut off, "
            "how long the run had for it.",
        ),
    ] = None
    trained_seconds: Annotated[
        float | None, Field(ge=0, description="Seconds of training over all runs, where rank 0 said so on leaving.")
    ] = None
    ended_early: Annotated[
        str | None,
        Field(max_length=LONGEST_EARLY, description="Why the script ended training before all steps were done."),
    ] = None
    exit_code: Annotated[int | None, Field(description="Exit code of the worker that ended the run.")] = None
    failed_on: Annotated[
        list[str], Field(max_length=MOST_FAILED_ON, description="Nodes of the workers that failed first.")
    ] = []
    reason: Annotated[str, Field(description="Why it ended so, in words.")] = ""


class NodeFailure(ApiModel):
    """A run that failed on a node."""

    node: Annotated[str, Field(description="Name of the node.")]
    run: Annotated[int, Field(ge=1, description="Number of the run.")]
    at: Annotated[Timestamp, Field(description="When it failed.")]


Seconds = Annotated[float, Field(ge=0)]


class ServiceStatus(ApiModel):
    """Attained service, derived from recorded starts and stops. Owned by the operator.

    Closed runs are summed and the open one keeps its start. One update writes both: no crash loses or doubles any
    service. At time t a job has `attained_gpu_seconds + (t - running_since) * gpus` while `running_since` is set.
    """

    run: Annotated[int, Field(ge=0, description="The newest run whose workers were made.")] = 0
    ended_run: Annotated[int, Field(ge=0, description="The newest run that holds nothing any more.")] = 0
    running_since: Annotated[Timestamp | None, Field(description="When the last worker of the open run started.")] = (
        None
    )
    running_gpu_type: Annotated[str | None, Field(description="GPU type of the open run.")] = None
    attained_gpu_seconds: Annotated[float, Field(ge=0, description="GPU seconds of all closed runs.")] = 0.0
    received_seconds: Annotated[dict[str, Seconds], Field(description="Seconds of closed runs by GPU type.")] = {}
    spread_seconds: Annotated[
        dict[str, Seconds],
        Field(description="The part of them in which its place was spread (status.allocation.spread)."),
    ] = {}
    preemptions: Annotated[int, Field(ge=0, description="Runs that ended because the leader revoked them.")] = 0
    failures: Annotated[
        int, Field(ge=0, description="Runs that failed; those that are not forgiven count against backoffLimit.")
    ] = 0
    forgiven: Annotated[
        int | None, Field(ge=0, description="Failed runs that no longer count: the job has trained on well since.")
    ] = None
    failed_at_step: Annotated[
        int | None, Field(ge=0, description="Steps in the newest checkpoint when a run last failed.")
    ] = None
    node_failures: Annotated[
        list[NodeFailure],
        Field(max_length=MOST_NODE_FAILURES, description="Nodes on which its runs failed, the newest last."),
    ] = []
    refusals: Annotated[
        int,
        Field(
            ge=0,
            description="Runs in a row that were refused before they began, or left unasked with steps that no "
            "checkpoint has; each lengthens the wait.",
        ),
    ] = 0
    suspended_since: Annotated[Timestamp | None, Field(description="Since when spec.suspend has held the job.")] = None
    suspended_seconds: Annotated[
        float, Field(ge=0, description="Seconds for which it was suspended before that. They do not count as waiting.")
    ] = 0.0
    retry_at: Annotated[Timestamp | None, Field(description="Not before this does a failed job run again.")] = None
    last: Annotated[RunOutcome | None, Field(description="How the newest ended run ended.")] = None

    @property
    def counted_failures(self) -> int:
        """Failed runs that count against backoffLimit."""
        return max(0, self.failures - (self.forgiven or 0))


class WorkerStatus(ApiModel):
    """One worker pod as the operator last saw it."""

    name: Annotated[str, Field(description="Name of the pod.")]
    rank: Annotated[int, Field(ge=0, description="Index of the pod among the job's workers.")]
    node: Annotated[str, Field(description="Node the pod is pinned to.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs of the pod.")]
    cpu_millis: Annotated[int, Field(ge=0, description="CPU of the pod in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=0, description="Memory of the pod in bytes.")]
    state: Annotated[str, Field(description="Gated, Waiting, Running, Succeeded or Failed.")]
