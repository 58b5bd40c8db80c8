"""How a run starts, goes and ends."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_R: Final = (ReasonPlace.RUNNING,)
_ENDS: Final = (ReasonPlace.RUNNING, ReasonPlace.LAST_RUN)

RUNS: Final[dict[Reason, Entry]] = {
    Reason.WAITING_FOR_PROFILE: Entry(_R, "the job is queued once its profile is complete"),
    Reason.WAITING_FOR_PLAN: Entry(_R, "the job waits for its turn; status.queue says where it stands"),
    Reason.WAITING_FOR_ROOM: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.PROFILED),
        "run {run} starts as soon as the pods that leave its nodes are gone",
        event="Normal",
    ),
    Reason.NOT_VALID: Entry(_R, "the condition Valid says what to change"),
    Reason.SUSPENDED: Entry(
        (*_R, ReasonPlace.OFFERED), "spec.suspend is true", "set it to false to go on", event="Normal"
    ),
    Reason.WORKERS_STARTING: Entry(_R, "run {run} starts: {running} of {workers} workers run", event="Normal"),
    Reason.WORKER_WAITING: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.PROFILED),
        "run {run}: worker {rank} waits ({problem})",
        "`kubectl describe pod {pod}` says more; correct what spec.template asks of the node",
        "A worker was not bound, or something keeps its containers from starting.",
        "Warning",
    ),
    Reason.IMAGE_NOT_PULLED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.PROFILED, ReasonPlace.LAST_RUN),
        "run {run}: an image of worker {rank} cannot be pulled ({problem})",
        "correct the image in spec.template, or name what may pull it in spec.template.spec.imagePullSecrets",
        "The run is given up after two minutes and counts as failed.",
        "Warning",
    ),
    Reason.VOLUME_NOT_MOUNTED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.PROFILED, ReasonPlace.LAST_RUN),
        "run {run}: a volume of worker {rank} is not there ({problem})",
        "make what the volume names, or correct spec.template.spec.volumes",
        "A volume cannot be mounted, or its claim cannot be bound. The run is given up after two minutes and counts as "
        "failed; where kube-scheduler itself finds no volume, the job is queued again after a wait that "
        "grows from 10 s to 10 min.",
        "Warning",
    ),
    Reason.CONTAINER_NOT_CREATED: Entry(
        (ReasonPlace.RUNNING, ReasonPlace.PROFILED, ReasonPlace.LAST_RUN),
        "run {run}: a container of worker {rank} cannot be made ({problem})",
        "correct what it names in spec.template: ConfigMap, Secret, user, command or working folder",
        "The run is given up after two minutes and counts as failed.",
        "Warning",
    ),
    Reason.WORKERS_RUNNING: Entry(_R, "run {run}: {workers} of {workers} workers run, on {gpu_type}", event="Normal"),
    Reason.YIELDING: Entry(_R, "run {run} leaves by {until}: {why}", event="Normal"),
    Reason.PREEMPTED: Entry(
        (ReasonPlace.EVENT,),
        "the plan ends run {run}: {text}",
        means="The job checkpoints, keeps its progress and is queued again. status.preemptions has the newest ones, "
        "with their rule.",
        event="Normal",
    ),
    Reason.FINISHED: Entry(_R, "the condition Finished says how it ended"),
    Reason.WORKERS_SUCCEEDED: Entry(_ENDS, "run {run}: all workers are done", event="Normal"),
    Reason.ENDED_EARLY: Entry(_ENDS, "run {run}: the script ended training after step {step}: {why}", event="Normal"),
    Reason.WORKERS_LEFT: Entry(_ENDS, "run {run} checkpointed and left{step}", event="Normal"),
    Reason.LEFT_UNSAVED: Entry(
        _ENDS,
        "run {run} left, and no checkpoint has what it trained after step {step}: {why}",
        "see why the extender did not answer the worker, or did not take it for one of the job: the log of pod {pod} "
        "and that of the extender",
        "A worker that gets no valid lease may write no checkpoint, because a newer run may be writing. The next run "
        "trains those steps again. From the second such run on it waits.",
        "Warning",
    ),
    Reason.LEASE_OVER: Entry(
        _ENDS,
        "run {run} was stopped after its lease had ended",
        means="A job without the library, or with preemption Signal, gets SIGTERM and its grace period at a lease's "
        "end; it is queued again.",
        event="Normal",
    ),
    Reason.CHECKPOINT_NOT_WRITTEN: Entry(
        _ENDS,
        "run {run} was killed {seconds} s after its lease had ended and had not written its checkpoint; at least "
        "{lost} steps are lost, the job goes on from step {kept}",
        "make the save function of synergy_job.iterate return sooner, let it save more often, or raise "
        "spec.preemption.maxCheckpointSeconds of the SchedulingPolicy",
        "The checkpoint function never returned, or took longer than the job had. It counts as no failure, and the "
        "next run has twice the time, up to spec.preemption.maxCheckpointSeconds of the SchedulingPolicy.",
        "Warning",
    ),
    Reason.NOT_STARTED: Entry(_ENDS, "run {run} gave its place back before it started", event="Normal"),
    Reason.WORKER_FAILED: Entry(
        _ENDS,
        "run {run}: worker {rank} ended with exit code {exit_code}{problem}",
        "look at the log of pod {pod}",
        "The training command itself failed. It is tried again from its checkpoint up to spec.backoffLimit times.",
        "Warning",
    ),
    Reason.CHECKPOINT_FAILED: Entry(
        _ENDS,
        "run {run}: the {function} function of worker {rank} raised {problem}",
        "correct the function that the training script gives to synergy_job.iterate, or what it writes to; the log "
        "of pod {pod} has the traceback",
        "A checkpoint could not be saved or loaded. The run counts as failed.",
        "Warning",
    ),
    Reason.OUT_OF_MEMORY: Entry(
        _ENDS,
        "run {run}: worker {rank} was killed for memory at {memory}",
        "raise spec.resources.min.memory, or make the job smaller",
        event="Warning",
    ),
    Reason.WORKER_NOT_STARTED: Entry(
        _ENDS,
        "run {run}: worker {rank} could not start ({problem})",
        "correct spec.template",
        "A container was made but could not be run, an init container failed, or the containers were not there after "
        "15 minutes.",
        "Warning",
    ),
    Reason.NODE_NOT_FENCED: Entry(
        (ReasonPlace.RUNNING,),
        "run {run}: node {node} does not report, and worker {rank} may still train and write checkpoints there. The "
        "next run starts at {until}, or as soon as the node reports, is deleted, or has the taint "
        "node.kubernetes.io/out-of-service",
        "where you know that the machine is off, add that taint to the node, or delete the Node",
        "Two runs that write one checkpoint would destroy it. The operator waits until the old worker has surely "
        "stopped writing.",
        "Warning",
    ),
    Reason.WORKER_LOST: Entry(
        _ENDS,
        "run {run}: worker {rank} was lost ({problem}); the job is queued again",
        means="A pod was deleted, evicted or lost with its node. It counts as no failure.",
        event="Warning",
    ),
    Reason.PARTNER_FAILED: Entry(
        _ENDS,
        "run {run}: worker {rank} ended with exit code {exit_code} when a worker of {partner} did, which had its GPU "
        "too; the job is queued again",
        means="Under MPS a client that fails can bring down the others on its GPU. It counts as no failure of this "
        "job, unless both ended in the same second and it was so in the run before too.",
        event="Warning",
    ),
    Reason.WORKER_REFUSED: Entry(
        _ENDS,
        "run {run}: the node refused worker {rank} ({problem}); the job is queued again",
        means="Another scheduler was faster, or the node's devices are not what it says. It counts as no failure.",
        event="Warning",
    ),
    Reason.POD_REFUSED: Entry(
        _ENDS,
        "run {run}: the API server refused a pod ({problem})",
        "correct spec.template, raise the ResourceQuota or LimitRange that these words name, or remove what has the "
        "name that they say is taken",
        "ResourceQuota, LimitRange, Pod Security or another admission refused the pod, another pod has its name, "
        "or it is not a pod at all. What a quota or an admission refused, or the name, is tried again, with new names, "
        "after a wait that grows from 10 s to 10 min; what is no pod counts as a failed run.",
        "Warning",
    ),
    Reason.SERVICE_REFUSED: Entry(
        _ENDS,
        "run {run}: the API server refused the Service of the workers ({problem})",
        "raise the ResourceQuota that these words name, remove or rename the Service that has the name, or create the "
        "job anew under another name",
        "ResourceQuota or another admission refused the headless Service tj-NAME, or a Service that is not the job's "
        "has its name: kube-synergy never takes over such a Service. The run gives its place back and is tried again "
        "after a wait that grows from 10 s to 10 min.",
        "Warning",
    ),
    Reason.START_REFUSED: Entry(
        _ENDS,
        "run {run}: the API server refused to let the pods start ({problem})",
        "correct the admission webhook or policy, or raise the ResourceQuota, that these words name",
        "An admission webhook, policy or quota refused the Secret with the key of the job's gang, or the change that "
        "removes the pods' scheduling gate. The run gives its place back and is tried again after a wait that grows "
        "from 10 s to 10 min.",
        "Warning",
    ),
    Reason.PODS_NOT_STARTED: Entry(
        _ENDS,
        "run {run} was given back: none of its pods was bound to a node within {seconds} s after its place was free",
        "the operator's log says what keeps it from making the pods",
        "The extender revokes a run whose GPUs are held for no pod, so that other jobs get them: after 5 minutes in "
        "which no run of the cluster began, or after 15 minutes. The run is tried again after a wait that grows from "
        "10 s to 10 min.",
        "Warning",
    ),
    Reason.GANG_NOT_BOUND: Entry(
        _ENDS,
        "run {run}: worker {rank} was not bound within {seconds} s ({problem}); all workers were taken back and "
        "the job is queued again",
        "correct what spec.template asks of a node, its scheduling gates or resource claims, if these words name them",
        "Something that the plan does not see keeps a worker off its node: a foreign pod was faster, or the template "
        "asks for what the node has not. It is tried again after a wait that grows from 10 s to 10 min.",
        event="Warning",
    ),
    Reason.PLACE_LOST: Entry(
        _ENDS,
        "run {run}: status.allocation was deleted; its workers leave and the job is queued again",
        means="Only the extender writes status.allocation. Without it no component knows what the run holds.",
        event="Warning",
    ),
    Reason.RUN_ENDED: Entry(_ENDS, "run {run} ended: {problem}", event="Normal"),
    Reason.NOT_FINISHED: Entry((ReasonPlace.FINISHED,), "the job has steps left"),
    Reason.JOB_SUCCEEDED: Entry(
        (ReasonPlace.FINISHED,), "all workers of run {run} ended with exit code 0{early}", event="Normal"
    ),
    Reason.BACKOFF_LIMIT_EXCEEDED: Entry(
        (ReasonPlace.FINISHED,),
        "failed runs: {failures}, spec.backoffLimit is {limit}; the last: {problem}",
        means="The job has failed for good. Correct what the last run failed of and create the job anew.",
        event="Warning",
    ),
    Reason.AS_PLANNED: Entry(
        (ReasonPlace.RESOURCES,), "the workers have {cpu} CPU and {memory} memory, as planned", event="Normal"
    ),
    Reason.RESIZING: Entry((ReasonPlace.RESOURCES,), "{workers} workers are being resized"),
    Reason.RESIZE_PENDING: Entry(
        (ReasonPlace.RESOURCES,),
        "worker {rank} keeps its size for now: {problem}",
        means="The kubelet puts an in-place resize off until the node has room, or tries one again that went wrong. "
        "What was asked for stays reserved.",
        event="Warning",
    ),
    Reason.RESIZE_REFUSED: Entry(
        (ReasonPlace.RESOURCES,),
        "worker {rank} cannot be given {cpu} CPU and {memory} memory: {problem}; the plan goes by what it has for "
        "{minutes} min, or until the next run",
        means="The API server refused an in-place resize: a quota, or a Kubernetes that cannot shrink memory in place.",
        event="Warning",
    ),
    Reason.RESIZE_INFEASIBLE: Entry(
        (ReasonPlace.RESOURCES,),
        "worker {rank} cannot be given {cpu} CPU and {memory} memory on its node: {problem}; the plan goes by what it "
        "has for {minutes} min, or until the next run",
        means="The kubelet will not carry out an in-place resize, as with a static CPU manager. status.sizeLimits says "
        "what the plan keeps to.",
        event="Warning",
    ),
    Reason.MEMORY_IN_USE: Entry(
        (ReasonPlace.RESOURCES,),
        "worker {rank} uses more memory than the {memory} that the plan leaves it: {problem}; the plan goes by what it "
        "has for {minutes} min, or until the next run",
        means="A memory limit is not lowered below what is in use. Where this stands often, the profile says too "
        "little memory: set spec.resources.min.memory.",
        event="Warning",
    ),
    Reason.RESIZE_UNAVAILABLE: Entry(
        (ReasonPlace.RESOURCES,),
        "this Kubernetes cannot resize running pods: the next run starts with the planned size",
        means="In-place resize is on by default from Kubernetes 1.33.",
    ),
    Reason.OWNER_MISSING: Entry(
        (ReasonPlace.VALID, *_ENDS),
        "the object of spec.managed is not there, has no label kube-synergy.dev/managed, or its kind is not managed",
        means="The operator watches the kinds of operator.managedKinds of the chart. A TrainingJob belongs to the "
        "object that it was made for.",
        event="Warning",
    ),
    Reason.OWNER_SUCCEEDED: Entry((ReasonPlace.FINISHED, *_ENDS), "{object} is complete", event="Normal"),
    Reason.OWNER_FAILED: Entry(
        (ReasonPlace.FINISHED, *_ENDS),
        "{object} has failed: {problem}",
        means="Its own controller says so, by its own limits. Correct it and create it anew.",
        event="Warning",
    ),
    Reason.OWNER_SUSPENDED: Entry(
        _ENDS,
        "{object} was suspended by somebody else",
        "suspend its TrainingJob to hold it",
        "The operator alone writes spec.suspend of a managed object. The job goes back to the queue.",
        "Warning",
    ),
}
