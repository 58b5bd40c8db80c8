"""Every reason that a condition, an event or an ended run can carry, each with its words: what is, and what to change.

The list is closed: code elsewhere names a reason and gives the facts that its text asks for.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Reasons in the order in which a job can meet them."""

    ACCEPTED = "Accepted"
    INVALID_SPEC = "InvalidSpec"
    NO_CONTAINER = "NoContainer"
    NO_IMAGE = "NoImage"
    NO_COMMAND = "NoCommand"
    NODE_NAME_SET = "NodeNameSet"
    SIDECAR_WANTS_GPU = "SidecarWantsGPU"
    SIDECARS_TOO_LARGE = "SidecarsTooLarge"
    NO_GPU_NODES = "NoGPUNodes"
    UNKNOWN_GPU_TYPE = "UnknownGPUType"
    TOO_MANY_GPUS = "TooManyGPUs"
    WORKER_TOO_LARGE = "WorkerTooLarge"
    MIN_TOO_LARGE = "MinTooLarge"
    MATRIX_MISSING = "MatrixMissing"
    MATRIX_FALLS = "MatrixFalls"

    PROFILE_SKIPPED = "ProfileSkipped"
    PROFILE_PROVIDED = "ProfileProvided"
    PROFILE_KNOWN = "ProfileKnown"
    PROFILE_MEASURED = "ProfileMeasured"
    PROFILE_WAITING = "ProfileWaiting"
    PROFILE_MEASURING = "ProfileMeasuring"
    NO_NODE_TO_PROFILE = "NoNodeToProfile"
    PROFILE_CRASHED = "ProfileCrashed"
    PROFILE_NO_STEPS = "ProfileNoSteps"
    PROFILE_TIMEOUT = "ProfileTimeout"
    PROFILE_TOO_NOISY = "ProfileTooNoisy"
    PROFILE_BAD_COMMAND = "ProfileBadCommand"
    PROFILE_OUT_OF_MEMORY = "ProfileOutOfMemory"
    PROFILE_NO_RESULT = "ProfileNoResult"

    WAITING_FOR_PROFILE = "WaitingForProfile"
    WAITING_FOR_PLAN = "WaitingForPlan"
    WAITING_FOR_ROOM = "WaitingForRoom"
    NOT_VALID = "NotValid"
    SUSPENDED = "Suspended"
    WORKERS_STARTING = "WorkersStarting"
    WORKER_WAITING = "WorkerWaiting"
    WORKERS_RUNNING = "WorkersRunning"
    YIELDING = "Yielding"
    FINISHED = "Finished"

    WORKERS_SUCCEEDED = "WorkersSucceeded"
    WORKERS_LEFT = "WorkersLeft"
    LEASE_OVER = "LeaseOver"
    NOT_STARTED = "NotStarted"
    WORKER_FAILED = "WorkerFailed"
    OUT_OF_MEMORY = "OutOfMemory"
    WORKER_NOT_STARTED = "WorkerNotStarted"
    WORKER_LOST = "WorkerLost"
    WORKER_REFUSED = "WorkerRefused"
    POD_REFUSED = "PodRefused"
    GANG_NOT_BOUND = "GangNotBound"
    SERIES_ENDED = "SeriesEnded"
    RUN_ENDED = "RunEnded"
    SPEC_CHANGED = "SpecChanged"
    PROFILE_POD_MISSING = "ProfilePodMissing"

    NOT_FINISHED = "NotFinished"
    JOB_SUCCEEDED = "JobSucceeded"
    BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
    PROFILE_FAILED = "ProfileFailed"

    AS_PLANNED = "AsPlanned"
    RESIZING = "Resizing"
    RESIZE_PENDING = "ResizePending"
    RESIZE_REFUSED = "ResizeRefused"


TEXTS: Final[dict[Reason, str]] = {
    Reason.ACCEPTED: "the spec can be planned on this cluster",
    Reason.INVALID_SPEC: "{problem}: correct this field",
    Reason.NO_CONTAINER: "spec.template.spec.containers is empty: add the container that trains",
    Reason.NO_IMAGE: "spec.template.spec.containers[0].image is not set: name the image that trains",
    Reason.NO_COMMAND: (
        "spec.template.spec.containers[0].command is not set: name the command that trains, since an image's own "
        "entrypoint cannot be measured"
    ),
    Reason.NODE_NAME_SET: (
        "spec.template.spec.nodeName is set: remove it, the plan chooses the node (or use nodeSelector)"
    ),
    Reason.SIDECAR_WANTS_GPU: (
        "container {container} asks for nvidia.com/gpu: only the first container trains, and its GPUs come from "
        "spec.gpus; remove the request"
    ),
    Reason.SIDECARS_TOO_LARGE: (
        "the containers beside the first ask for {cpu} CPU and {memory} memory in each worker, which leaves nothing of "
        "a worker's {share_cpu} CPU and {share_memory} memory for training: lower their requests"
    ),
    Reason.NO_GPU_NODES: (
        "no node of the cluster offers nvidia.com/gpu of a known type: add GPU nodes or a GPUPool that selects them"
    ),
    Reason.UNKNOWN_GPU_TYPE: (
        "spec.gpuTypes names {wanted}, the cluster has {present}: name one of these, or leave gpuTypes out"
    ),
    Reason.TOO_MANY_GPUS: (
        "spec.gpus is {wanted}, the most that {where} can hold is {most} (type {gpu_type}): ask for {most} at the "
        "most, "
        "or add nodes"
    ),
    Reason.WORKER_TOO_LARGE: (
        "spec.gpusPerWorker is {wanted}, the largest node has {most} GPUs (type {gpu_type}): lower gpusPerWorker"
    ),
    Reason.MIN_TOO_LARGE: (
        "spec.resources.min.{resource} {wanted} is more than all nodes of any allowed GPU type have ({most} of type "
        "{gpu_type}): lower it"
    ),
    Reason.MATRIX_MISSING: (
        "spec.profile.matrices has no matrix for any GPU type that the job may use here ({present}): add one, or use "
        "profile.mode Auto"
    ),
    Reason.MATRIX_FALLS: (
        "spec.profile.matrices[{index}].stepsPerSecond falls from {before} to {after} as {axis} grows, at "
        "[{row}][{column}]: with more {axis} a job is never slower, put the greatest value so far there"
    ),
    Reason.PROFILE_SKIPPED: "profile.mode is Skip: the job gets the GPU-proportional share of CPU and memory",
    Reason.PROFILE_PROVIDED: "the matrices of spec.profile are used",
    Reason.PROFILE_KNOWN: "ThroughputProfile {name}, measured by an identical job, is used",
    Reason.PROFILE_MEASURED: "{points} CPU points were measured on {gpu_types}",
    Reason.PROFILE_WAITING: (
        "{gpus} GPUs of type {gpu_type} are asked for to measure the job, after {points} points so far"
    ),
    Reason.PROFILE_MEASURING: "run {run} measures with {cpu} CPU on {gpu_type}, after {points} points so far",
    Reason.NO_NODE_TO_PROFILE: (
        "no node of an allowed GPU type ({wanted}) takes pods now: uncordon or add one, or use profile.mode "
        "Provided or Skip"
    ),
    Reason.PROFILE_CRASHED: (
        "profile run {job} with {cpu} CPU: {problem}; run the command by hand, its log is in the pod of that Job"
    ),
    Reason.PROFILE_NO_STEPS: (
        "profile run {job} with {cpu} CPU: {problem}; the training loop must go through synergy_job.iterate, or print "
        "its steps"
    ),
    Reason.PROFILE_TIMEOUT: (
        "profile run {job} with {cpu} CPU: {problem}; raise spec.profile.timeoutSeconds or lower spec.profile.steps"
    ),
    Reason.PROFILE_TOO_NOISY: (
        "profile run {job} with {cpu} CPU: {problem}; raise spec.profile.steps or spec.profile.warmupSteps"
    ),
    Reason.PROFILE_BAD_COMMAND: "profile run {job}: {problem}; correct spec.template.spec.containers[0].command",
    Reason.PROFILE_OUT_OF_MEMORY: (
        "profile run {job} was killed for memory at {memory}: raise spec.resources.max.memory, or make the job smaller"
    ),
    Reason.PROFILE_NO_RESULT: (
        "profile run {job} with {cpu} CPU ended without a result ({problem}): the image needs python3, and nothing"
        " else "
        "may write /dev/termination-log"
    ),
    Reason.WAITING_FOR_PROFILE: "the job is queued once its profile is complete",
    Reason.WAITING_FOR_PLAN: "the job waits for its turn; status.queue says where it stands",
    Reason.WAITING_FOR_ROOM: "run {run} starts as soon as the pods that leave its nodes are gone",
    Reason.NOT_VALID: "the condition Valid says what to change",
    Reason.SUSPENDED: "spec.suspend is true: set it to false to go on",
    Reason.WORKERS_STARTING: "run {run}: {running} of {workers} workers run",
    Reason.WORKER_WAITING: "run {run}: worker {rank} waits: {problem}",
    Reason.WORKERS_RUNNING: "run {run}: {workers} of {workers} workers run, on {gpu_type}",
    Reason.YIELDING: "run {run} leaves by {until}: {why}",
    Reason.FINISHED: "the condition Finished says how it ended",
    Reason.WORKERS_SUCCEEDED: "run {run}: all workers are done",
    Reason.WORKERS_LEFT: "run {run} checkpointed and left{step}",
    Reason.LEASE_OVER: "run {run} was stopped after its lease had ended",
    Reason.NOT_STARTED: "run {run} gave its place back before it started",
    Reason.WORKER_FAILED: (
        "run {run}: worker {rank} ended with exit code {exit_code}{problem}: look at the log of pod {pod}"
    ),
    Reason.OUT_OF_MEMORY: (
        "run {run}: worker {rank} was killed for memory at {memory}: raise spec.resources.min.memory, or make the "
        "job smaller"
    ),
    Reason.WORKER_NOT_STARTED: "run {run}: worker {rank} could not start: {problem}: correct spec.template",
    Reason.WORKER_LOST: "run {run}: worker {rank} was lost ({problem}); the job is queued again",
    Reason.WORKER_REFUSED: "run {run}: the node refused worker {rank} ({problem}); the job is queued again",
    Reason.POD_REFUSED: "run {run}: the API server refused a pod: {problem}",
    Reason.GANG_NOT_BOUND: (
        "run {run}: worker {rank} was not bound within {seconds} s ({problem}); all workers were taken back and "
        "the job is queued again"
    ),
    Reason.SERIES_ENDED: "run {run}: the profile runs on {gpu_type} are done",
    Reason.RUN_ENDED: "run {run} ended: {problem}",
    Reason.SPEC_CHANGED: "run {run}: the spec or the nodes have changed, the job is measured anew",
    Reason.PROFILE_POD_MISSING: (
        "run {run}: no pod was made for profile run {job} within {seconds} s: `kubectl describe job {job}` says why (a "
        "ResourceQuota or LimitRange?)"
    ),
    Reason.NOT_FINISHED: "the job has steps left",
    Reason.JOB_SUCCEEDED: "all workers of run {run} ended with exit code 0",
    Reason.BACKOFF_LIMIT_EXCEEDED: "failed runs: {failures}, spec.backoffLimit is {limit}; the last: {problem}",
    Reason.PROFILE_FAILED: "the job could not be measured; the condition Profiled says why",
    Reason.AS_PLANNED: "the workers have {cpu} CPU and {memory} memory, as planned",
    Reason.RESIZING: "{workers} workers are being resized",
    Reason.RESIZE_PENDING: "worker {rank} keeps its size for now: {problem}",
    Reason.RESIZE_REFUSED: "worker {rank} keeps its size: {problem}; the next run starts with the planned size",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason with its words."""

    reason: Reason
    message: str


def say(reason: Reason, **facts: object) -> Finding:
    """The reason's text with `facts` filled in. Raises KeyError if a fact that the text asks for is missing."""
    return Finding(reason, TEXTS[reason].format(**facts))
