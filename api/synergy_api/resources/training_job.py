"""TrainingJob: what a user asks for (spec) and what the two owners of its status say (operator, extender)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from synergy_api.base import ApiModel, Conditions, Timestamp
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.profile import ConfidenceList, DemandList, MatrixList, ProfilePoint, ProfileRequest
from synergy_api.parts.profiling import Dataset, ProfileSpec, Throughput
from synergy_api.parts.progress import MeasuredSpeed, Progress, SpeedEstimate
from synergy_api.parts.queues import Marks
from synergy_api.parts.relations.array import Array, ArrayStatus
from synergy_api.parts.relations.clusters import ClusterOffer, ManagedBy
from synergy_api.parts.relations.dependencies import Dependencies, MetDependencies
from synergy_api.parts.relations.managed import Managed
from synergy_api.parts.service import ServiceStatus, WorkerStatus
from synergy_api.parts.sharing import Sharing
from synergy_api.parts.sizes import ResourceRange, SizeLimits
from synergy_api.parts.summary import Summary
from synergy_api.parts.template import TEMPLATE_SCHEMA
from synergy_api.parts.usage import MOST_PAIRS, ReferenceMatches, ReferencePair, Traffic, UsageList
from synergy_api.parts.waiting import (
    MOST_PREEMPTIONS,
    JobProblem,
    Late,
    PreemptionRecord,
    QueueStatus,
    Restriction,
    Slo,
)
from synergy_api.resources.training_job_rules import ONE_END, SPEC_RULES

Phase = Literal["Pending", "Profiling", "Queued", "Starting", "Running", "Yielding", "Succeeded", "Failed", "Suspended"]
FINISHED: tuple[Phase, ...] = ("Succeeded", "Failed")


class TrainingJobSpec(ApiModel):
    """What the user asks for."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": SPEC_RULES})

    gpus: Annotated[
        int,
        Field(
            ge=1,
            le=65536,
            description="GPUs of the whole job, fixed for its life.",
            json_schema_extra={
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "gpus is fixed for the life of the job"}
                ]
            },
        ),
    ]
    gpus_per_worker: Annotated[
        int | None,
        Field(
            ge=1,
            description="GPUs of one worker pod at the most; by default one pod takes all that the job has on a node.",
        ),
    ] = None
    template: Annotated[
        dict[str, Any],
        Field(
            description="PodTemplateSpec of a worker. The first container trains and must name its image and command.",
            json_schema_extra=TEMPLATE_SCHEMA,
        ),
    ]
    gpu_types: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63)]],
        Field(
            max_length=16,
            description="GPU types the job may run on; empty means any.",
            json_schema_extra={"x-kubernetes-list-type": "set"},
        ),
    ] = []
    steps: Annotated[
        int | None,
        Field(ge=1, description="Training steps until the job is done. Give one of steps, epochs and maxRunSeconds."),
    ] = None
    epochs: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000_000,
            description="Passes over the data until the job is done. The library counts the steps of a pass; plans "
            "know the length from the profile runs, else once training has begun.",
        ),
    ] = None
    max_run_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000_000,
            description="Seconds of training on GPUs until the job is done, over all runs: from a run's first step to "
            "its end, pauses included, waiting and starting not. The job then saves a checkpoint and succeeds.",
        ),
    ] = None
    batch_size: Annotated[int | None, Field(ge=1, description="Samples per training step, over all GPUs.")] = None
    tenant: Annotated[
        str,
        Field(
            max_length=63,
            description="The Tenant that the job counts for, one of those that its namespace belongs to. Empty means "
            "the namespace's default one; the namespace itself where no Tenant has it.",
        ),
    ] = ""
    weight: Annotated[
        float,
        Field(gt=1e-6, le=1e6, description="Weight in fair policies. Plans count at most the Tenant's caps.maxWeight."),
    ] = 1.0
    priority_class_name: Annotated[
        str,
        Field(
            max_length=253,
            description="Name of a PriorityClass. Among the jobs of its tenant, a job of a higher class goes first, "
            "whatever the policy. Plans count at most the Tenant's caps.maxPriority. The class of pods is another "
            "matter: that is the template's.",
        ),
    ] = ""
    slo: Slo | None = None
    resources: ResourceRange = ResourceRange()
    dataset: Dataset | None = None
    profile: ProfileSpec = ProfileSpec()
    throughput: Throughput | None = None
    sharing: Sharing = Sharing()
    preemption: Annotated[
        Literal["Checkpoint", "Signal", "Never"],
        Field(
            description="How the job leaves at a lease's end: Checkpoint through the library, Signal by SIGTERM and "
            "the grace period, Never keeps its GPUs until it is done."
        ),
    ] = "Checkpoint"
    placement: Annotated[
        Literal["Auto", "Consolidate", "Spread"],
        Field(description="Auto lets the plan decide, Consolidate waits for one node, Spread does not mind many."),
    ] = "Auto"
    after: Dependencies = []
    managed: Managed | None = None
    array: Annotated[
        Array | None,
        Field(
            description="Make many jobs of this one, which differ in an index, for example for a sweep of "
            "hyperparameters. The job itself has no workers then."
        ),
    ] = None
    managed_by: ManagedBy = None
    suspend: Annotated[bool, Field(description="Hold the job: it checkpoints, leaves and is not planned.")] = False
    backoff_limit: Annotated[
        int, Field(ge=0, le=1000, description="Failed runs, less those forgiven, after which the job has failed.")
    ] = 3
    ttl_seconds_after_finished: Annotated[
        int | None, Field(ge=0, description="The job is deleted this long after it finished; by default never.")
    ] = None

    @model_validator(mode="after")
    def _ends(self) -> "TrainingJobSpec":
        if [self.steps, self.epochs, self.max_run_seconds].count(None) != 2:
            raise ValueError(ONE_END)
        return self

    @property
    def has_gang(self) -> bool:
        """True if the job may run as several processes. Under torchrun that is one process for each GPU, even in a
        single pod."""
        return self.gpus > 1


class ProfileStatus(ApiModel):
    """The state of the job's profile. Owned by the operator."""

    state: Annotated[
        Literal["Waiting", "Measuring", "Complete", "Skipped", "Failed"], Field(description="Where it stands.")
    ]
    fingerprint: Annotated[
        str, Field(description="What identical jobs have in common; names their ThroughputProfile.")
    ] = ""
    image_digest: Annotated[
        str,
        Field(
            max_length=71,
            description="Digest of the image that the profile holds for, where its name leaves it open.",
        ),
    ] = ""
    running_digest: Annotated[
        str,
        Field(max_length=71, description="What the workers run instead: the job is measured anew before its next run."),
    ] = ""
    request: Annotated[ProfileRequest | None, Field(description="The place the next profile runs ask for.")] = None
    points: Annotated[list[ProfilePoint], Field(max_length=256, description="Points measured so far.")] = []
    unchecked: Annotated[
        list[str], Field(max_length=16, description="GPU types on which a run to check the memory model failed.")
    ] = []
    matrices: Annotated[MatrixList, Field(max_length=16, description="The full matrix for each GPU type.")] = []
    demand: Annotated[DemandList, Field(max_length=16, description="What saturates the job, for each GPU type.")] = []
    confidence: Annotated[
        ConfidenceList, Field(max_length=16, description="How well the matrices are known, for each GPU type.")
    ] = []
    usage: Annotated[
        UsageList, Field(max_length=16, description="What the job does to a GPU alone, where that was sampled.")
    ] = []
    traffic: Traffic | None = None
    pairs: Annotated[
        list[ReferencePair],
        Field(max_length=MOST_PAIRS, description="What it and reference jobs kept on a shared GPU, in order of time."),
    ] = []
    pairs_wanted_at: Annotated[
        Timestamp | None, Field(description="Since when it waits for a shared GPU to be measured beside references.")
    ] = None
    matches: Annotated[
        ReferenceMatches, Field(max_length=16, description="The reference that it resembles, for each GPU type.")
    ] = []


class TrainingJobStatus(ApiModel):
    """What is.

    Field ownership: operator - observedGeneration, phase, problem, conditions, profile, workers, sizeLimits,
    service, metDependencies, array, times;
    extender - allocation, queue, late, restriction, marks, estimates, preemptions (leader), progress (any replica),
    and of the summary each the texts about its own fields;
    controller of worker clusters - cluster, and all that it copies of a job that runs in one.
    """

    observed_generation: Annotated[
        int | None, Field(ge=0, description="Generation of the spec that the operator last acted on.")
    ] = None
    phase: Annotated[Phase | None, Field(description="Where the job stands in its life.")] = None
    problem: JobProblem | None = None
    conditions: Conditions = []
    profile: ProfileStatus | None = None
    workers: Annotated[
        list[WorkerStatus], Field(max_length=4096, description="Worker pods of the newest run, by rank.")
    ] = []
    size_limits: SizeLimits | None = None
    service: ServiceStatus | None = None
    met_dependencies: MetDependencies = []
    array: ArrayStatus | None = None
    cluster: ClusterOffer | None = None
    start_time: Annotated[Timestamp | None, Field(description="When the job first ran.")] = None
    completion_time: Annotated[Timestamp | None, Field(description="When the job succeeded or failed.")] = None
    allocation: Allocation | None = None
    queue: QueueStatus | None = None
    late: Late | None = None
    restriction: Restriction | None = None
    marks: Marks | None = None
    preemptions: Annotated[
        list[PreemptionRecord] | None,
        Field(max_length=MOST_PREEMPTIONS, description="The newest runs that plans ended, with the rule."),
    ] = None
    estimates: Annotated[
        list[SpeedEstimate] | None,
        Field(max_length=64, description="Throughputs that plans use and that were not measured, by GPU type."),
    ] = None
    progress: Progress | None = None
    summary: Summary | None = None

    @property
    def fingerprint(self) -> str:
        """Of what the job runs; empty before the operator has said."""
        return self.profile.fingerprint if self.profile is not None else ""

    @property
    def measured_speeds(self) -> list[MeasuredSpeed]:
        """Throughputs measured on GPU types without a matrix, of what the job runs now: not those of another image,
        command or batch size."""
        measured = self.progress.measured if self.progress is not None else []
        return [one for one in measured if one.fingerprint == self.fingerprint]
