"""What was measured of a TrainingJob while it ran (`status.progress`), and estimated where it never ran
(`status.estimates`); both written by the extender."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from synergy_api.base import ApiModel, Timestamp
from synergy_api.parts.service import LONGEST_EARLY
from synergy_api.parts.sharing import SharedSpeed

MOST_METRICS: Final = 8
MetricName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$", max_length=32)]
"""Name of a value that a training script reports."""


class PlacementSpeed(ApiModel):
    """How fast the job was on so many nodes, this near to each other."""

    gpu_type: Annotated[str, Field(description="GPU type it ran on.")]
    nodes: Annotated[int, Field(ge=1, description="Nodes its workers lay on.")]
    shared_domains: Annotated[
        int | None,
        Field(
            ge=0,
            le=4,
            description="How many domains of their pool's topology these nodes share; absent for a single node, and "
            "where the pool has no topology.",
        ),
    ] = None
    relative_speed: Annotated[
        float,
        Field(gt=0, description="Measured throughput divided by what the plan expected, the mean of the reports."),
    ]
    reports: Annotated[
        int, Field(ge=1, description="Reports that the mean is of, 100 at the most: older ones fade.")
    ] = 1


ENOUGH_REPORTS = 5
"""Reports of a throughput before anybody goes by it."""


class MeasuredSpeed(ApiModel):
    """How fast the job was on a GPU type that it has no matrix for, at its GPU-proportional share."""

    gpu_type: Annotated[str, Field(description="GPU type it ran on.")]
    steps_per_second: Annotated[float, Field(gt=0, description="Measured throughput, the mean of the reports.")]
    reports: Annotated[
        int, Field(ge=1, description="Reports that the mean is of, 100 at the most: older ones fade.")
    ] = 1
    estimated_steps_per_second: Annotated[
        float | None, Field(gt=0, description="What plans went by before, where that was an estimate.")
    ] = None
    fingerprint: Annotated[
        str, Field(max_length=64, description="That of the job's profile at that time; with another it counts no more.")
    ] = ""

    @property
    def is_known(self) -> bool:
        """Whether there are reports enough for plans to go by it."""
        return self.reports >= ENOUGH_REPORTS

    @property
    def error_of_estimate(self) -> float | None:
        """How far the estimate was off, relative to what was measured; None where there was none, or too few reports
        yet."""
        if self.estimated_steps_per_second is None or not self.is_known:
            return None
        return abs(self.estimated_steps_per_second / self.steps_per_second - 1.0)


class SpeedEstimate(ApiModel):
    """An estimated throughput: what a similar job gains on the GPU type."""

    gpu_type: Annotated[str, Field(description="GPU type it is estimated for.")]
    steps_per_second: Annotated[float, Field(gt=0, description="Throughput at the GPU-proportional share.")]


class Progress(ApiModel):
    """What rank 0 last reported. Owned by the extender's lease endpoint."""

    run: Annotated[int, Field(ge=0, description="Run that reported.")] = 0
    steps: Annotated[int, Field(ge=0, description="Training steps done.")] = 0
    checkpoint_steps: Annotated[int, Field(ge=0, description="Steps in the newest checkpoint.")] = 0
    steps_per_second: Annotated[float, Field(ge=0, description="Measured throughput of the last reports.")] = 0.0
    percent: Annotated[int, Field(ge=0, le=100, description="Steps done of all steps, in percent.")] = 0
    updated_at: Annotated[Timestamp | None, Field(description="When it was last reported.")] = None
    largest_tensor_bytes: Annotated[
        int | None,
        Field(ge=1, description="Bytes of the model's largest trained tensor; its part of the model is S_J."),
    ] = None
    model_bytes: Annotated[int | None, Field(ge=1, description="Bytes of all trained tensors of the model.")] = None
    sent_bytes_per_step: Annotated[
        int | None,
        Field(ge=1, description="Bytes that rank 0 sent its gang in a step, where the job did not tell its model."),
    ] = None
    world_size: Annotated[int | None, Field(ge=2, description="Processes that trained together then.")] = None
    save_seconds: Annotated[float | None, Field(ge=0, description="How long the newest checkpoint took to write.")] = (
        None
    )
    resume_seconds: Annotated[
        float | None,
        Field(ge=0, description="From the start of rank 0's process to its first step: imports, checkpoint, gang."),
    ] = None
    epoch_steps: Annotated[
        int | None, Field(ge=1, description="Steps of one pass over the data, as the library counts them.")
    ] = None
    trained_seconds: Annotated[
        float, Field(ge=0, description="Seconds of training over all runs, from a run's first step on.")
    ] = 0.0
    paused_seconds: Annotated[
        float, Field(ge=0, description="The part of trainedSeconds in which it saved or paused; not in the speed.")
    ] = 0.0
    ended_early: Annotated[
        str | None, Field(max_length=LONGEST_EARLY, description="Why the script ended training before its time.")
    ] = None
    metrics: Annotated[
        dict[str, float] | None,
        Field(max_length=MOST_METRICS, description="The newest values that the script reported, such as its loss."),
    ] = None
    gpu_uuids: Annotated[
        list[str], Field(max_length=64, description="The GPUs that its workers found, in order of rank.")
    ] = []
    placements: Annotated[
        list[PlacementSpeed],
        Field(max_length=16, description="Throughputs measured so far, by GPU type and number of nodes."),
    ] = []
    measured: Annotated[
        list[MeasuredSpeed],
        Field(max_length=16, description="Throughputs measured on GPU types without a matrix."),
    ] = []
    gpu_partners: Annotated[
        list[str], Field(max_length=47, description="Jobs that were seen on its GPU when it reported.")
    ] = []
    shared: Annotated[
        list[SharedSpeed],
        Field(max_length=8, description="What was measured while it shared a GPU, by partners, the newest last."),
    ] = []
