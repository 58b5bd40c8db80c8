"""What is found in a TrainingJob's spec before anything runs."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_V: Final = (ReasonPlace.VALID,)

SPECS: Final[dict[Reason, Entry]] = {
    Reason.ACCEPTED: Entry(_V, "the spec can be planned on this cluster"),
    Reason.TENANT_NOT_NAMED: Entry(
        _V,
        "the spec can be planned on this cluster, but spec.tenant is {tenant}, which the SchedulingPolicy does not "
        "name among its tenants ({named}), so the job counts for one of weight 1",
        "correct spec.tenant, or add the tenant to the SchedulingPolicy",
        "The policy is hierarchical and names tenants, and the job says that it is of another. It still runs.",
        "Warning",
    ),
    Reason.TENANT_REFUSED: Entry(
        _V,
        "the spec can be planned on this cluster, but spec.tenant is {tenant}, and namespace {namespace} belongs to "
        "{allowed}, so the job counts for {used}",
        "name one of these in spec.tenant or leave it out, or ask the cluster's administrator to add the namespace to "
        "the Tenant",
        "Which tenants a namespace belongs to is in the cluster's Tenants alone. The job runs all the same, as one of "
        "its namespace's own tenant.",
        "Warning",
    ),
    Reason.TENANT_CAPPED: Entry(
        _V,
        "the spec can be planned on this cluster, but {limits}",
        "lower or remove what is named, or ask the cluster's administrator for a Tenant {tenant} whose spec.caps allow "
        "it",
        "The job asks for more than the caps of its Tenant allow, or than a namespace of no Tenant may ask for. It "
        "runs all the same, within the caps.",
        "Warning",
    ),
    Reason.PRIORITY_CLASS_UNKNOWN: Entry(
        _V,
        "the spec can be planned on this cluster, but spec.priorityClassName is {name}, and the cluster has no such "
        "PriorityClass, so the job counts as one that names none",
        "correct spec.priorityClassName, or ask the cluster's administrator for the class",
        "kubectl get priorityclasses lists those that there are. The job runs all the same.",
        "Warning",
    ),
    Reason.FIELDS_OVERRIDDEN: Entry(
        _V,
        "the spec can be planned on this cluster, but the plan sets {fields} itself and ignores these values",
        "remove it from the template; CPU and memory are bounded by spec.resources",
        "The pod template sets something that belongs to the plan. The job still runs.",
        "Warning",
    ),
    Reason.INVALID_SPEC: Entry(
        _V,
        "{problem}",
        "correct this field",
        "A field has a value that it must not have. Most such values are refused by the API server when they are "
        "written; this is what it lets pass.",
        "Warning",
    ),
    Reason.SPEC_TOO_LARGE: Entry(
        _V,
        "spec.template has {size} bytes as JSON, the largest that is planned has {limit}",
        "move files and long texts into a ConfigMap, a volume or the image",
        "The API server keeps no object of more than about 1.5 MB, its status and its record of managers included. A "
        "status could not be written beside a larger template.",
        "Warning",
    ),
    Reason.OBJECT_TOO_LARGE: Entry(
        (ReasonPlace.EVENT,),
        "the TrainingJob has more than {limit} bytes as JSON, so that its status finds no room. Its pods are deleted, "
        "and nothing is done for it",
        "remove labels, annotations or other text from it",
        "The API server keeps no object of more than about 1.5 MB. The extender could never revoke a job whose status "
        "it cannot write.",
        "Warning",
    ),
    Reason.NO_CONTAINER: Entry(
        _V, "spec.template.spec.containers is empty", "add the container that trains", event="Warning"
    ),
    Reason.NO_IMAGE: Entry(
        _V, "spec.template.spec.containers[0].image is not set", "name the image that trains", event="Warning"
    ),
    Reason.NO_COMMAND: Entry(
        _V,
        "spec.template.spec.containers[0].command is not set",
        "name the command that trains, since an image's own entrypoint cannot be measured",
        event="Warning",
    ),
    Reason.NODE_NAME_SET: Entry(
        _V,
        "spec.template.spec.nodeName is set",
        "remove it, the plan chooses the node (or use nodeSelector)",
        event="Warning",
    ),
    Reason.SIDECAR_WANTS_GPU: Entry(
        _V,
        "container {container} asks for GPUs, but only the first container trains, and its GPUs come from spec.gpus",
        "remove the request",
        "A container beside the first, or an init container, asks for a GPU.",
        "Warning",
    ),
    Reason.SIDECARS_TOO_LARGE: Entry(
        (ReasonPlace.VALID, ReasonPlace.RUNNING, ReasonPlace.PROFILED, ReasonPlace.LAST_RUN),
        "the containers beside the first ask for {cpu} CPU and {memory} memory in each worker, which leaves nothing of "
        "a worker's {share_cpu} CPU and {share_memory} memory for training",
        "lower their requests",
        "A pod's share is for all its containers; the sidecars take all of it.",
        "Warning",
    ),
    Reason.INIT_CONTAINER_TOO_LARGE: Entry(
        (ReasonPlace.VALID, ReasonPlace.RUNNING, ReasonPlace.PROFILED, ReasonPlace.LAST_RUN),
        "init container {container} needs {cpu} CPU and {memory} memory of each worker, which is more than the "
        "{share_cpu} CPU and {share_memory} memory that a worker gets",
        "lower its requests, or raise spec.resources.min",
        "An init container runs before the others, in the same share of the node, with the sidecars that started "
        "before it beside it.",
        "Warning",
    ),
    Reason.NO_GPU_NODES: Entry(
        _V,
        "no node of the cluster offers GPUs of a known type",
        "add GPU nodes or a GPUPool that selects them",
        event="Warning",
    ),
    Reason.UNKNOWN_GPU_TYPE: Entry(
        _V,
        "spec.gpuTypes names {wanted}, the cluster has {present}",
        "name one of these, or leave gpuTypes out",
        "None of the GPU types that the job allows is there.",
        "Warning",
    ),
    Reason.TOO_MANY_GPUS: Entry(
        (ReasonPlace.VALID, ReasonPlace.QUEUE, ReasonPlace.RUNNING),
        "spec.gpus is {wanted}, the most that {where} can hold is {most} (type {gpu_type})",
        "ask for {most} at the most, or add nodes",
        "The job asks for more GPUs than the nodes open to it have, even if nothing else ran.",
        "Warning",
    ),
    Reason.WORKER_TOO_LARGE: Entry(
        _V,
        "spec.gpusPerWorker is {wanted}, the largest node has {most} GPUs (type {gpu_type})",
        "lower gpusPerWorker",
        event="Warning",
    ),
    Reason.MIN_TOO_LARGE: Entry(
        _V,
        "spec.resources.min.{resource} {wanted} is more than all nodes of any allowed GPU type have ({most} of type "
        "{gpu_type})",
        "lower it",
        event="Warning",
    ),
    Reason.MATRIX_MISSING: Entry(
        _V,
        "spec.profile.matrices has no matrix for any GPU type that the job may use here ({present})",
        "add one, or use profile.mode Auto",
        event="Warning",
    ),
    Reason.MATRIX_FALLS: Entry(
        (ReasonPlace.VALID, ReasonPlace.PROFILE),
        "{field}[{index}].stepsPerSecond falls from {before} to {after} as {axis} grows, at [{row}][{column}]",
        "with more {axis} a job is never slower, put the greatest value so far there",
        "A sensitivity matrix says that more CPU or memory makes the job slower.",
        "Warning",
    ),
}
