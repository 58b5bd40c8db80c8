"""Every name that two rooms must agree on: API group, labels, annotations, field managers, exit codes."""

from typing import Final

GROUP: Final = "kube-synergy.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
PRODUCT_VERSION: Final = "0.2.0"
ANNOTATION_VERSION: Final = f"{GROUP}/version"
"""On each CustomResourceDefinition: the version of the product whose models it was generated from."""

SCHEDULER_NAME: Final = "kube-synergy"

LABEL_JOB: Final = f"{GROUP}/job"
"""On every pod and Job made for a TrainingJob: the TrainingJob's name."""
LABEL_RUN: Final = f"{GROUP}/run"
"""The run (status.allocation.run) a pod belongs to."""
LABEL_RANK: Final = f"{GROUP}/rank"
LABEL_ARRAY: Final = f"{GROUP}/array"
"""On every TrainingJob that an array makes: the array's name."""
LABEL_ARRAY_INDEX: Final = f"{GROUP}/array-index"
LABEL_ROLE: Final = f"{GROUP}/role"
ROLE_WORKER: Final = "worker"
ROLE_PROFILE: Final = "profile"

ANNOTATION_PLANNED_NODE: Final = f"{GROUP}/planned-node"
"""The node the plan gave the pod; filter and bind admit no other."""
ANNOTATION_BOUND: Final = f"{GROUP}/bound"
"""Written by the Binding itself: JSON of what the extender recorded when it bound the pod."""
ANNOTATION_JOB_UID: Final = f"{GROUP}/job-uid"
"""On pods of which the TrainingJob is not the controller, those of profile runs and of managed objects: its uid."""

ANNOTATION_DEVICES: Final = f"{GROUP}/devices"
"""On pods of nodes with shared GPUs: how many of the device plugin's devices the pod asks for."""

ANNOTATION_RESOURCE: Final = f"{GROUP}/gpu-resource"
"""On pods whose GPUs are not called nvidia.com/gpu: what they are called."""

ANNOTATION_EMPTY_BY: Final = f"{GROUP}/empty-by"
"""On Nodes: when no job may run there any more (RFC 3339). An administrator writes it, by `kubectl synergy drain`."""

LABEL_PUBLISHED: Final = f"{GROUP}/published"
"""On a ThroughputProfile: with the value `true` the operator published it, and deletes it when there are too many."""
LABEL_MEASURED_FOR: Final = f"{GROUP}/measured-for"
"""On such a profile: the namespace of the job that was measured."""
SCRIPT_VOLUME: Final = "script"
"""The volume of a pod template that has a submitted program, from a ConfigMap."""
ANNOTATION_SCRIPT: Final = f"{GROUP}/script"
"""On such a template: hash of the program. The ConfigMap has another name for each job."""

LABEL_MANAGED: Final = f"{GROUP}/managed"
"""On a Job or the like: with the value `true` the operator makes a TrainingJob that starts and stops it."""
ANNOTATION_OWNER_UID: Final = f"{GROUP}/owner-uid"
"""On pods of a managed object: its uid. They become workers as runs start."""
ANNOTATION_PREEMPTIBLE: Final = f"{GROUP}/preemptible"
"""On a managed object: with the value `true` plans may suspend it while it runs, and its work is lost."""
ANNOTATION_STATUS: Final = f"{GROUP}/status"
"""On a managed object: the phase of its TrainingJob, and why it does not run."""
ANNOTATION_FAILURES_CLEARED: Final = f"{GROUP}/failures-cleared"
"""On Nodes: failures of jobs until then (RFC 3339) no longer count. Written by `kubectl synergy nodes --clear`."""
LABEL_POOL: Final = f"{GROUP}/pool"
"""On what asks for nodes: the GPUPool's name."""
ANNOTATION_FAILURES: Final = f"{GROUP}/failures"
"""On what asks for nodes: how many requests of the pool have failed one after the other before."""
LABEL_IDLE: Final = f"{GROUP}/idle"
"""On Nodes of pools with autoscaling: `true` while no job has needed them for spec.autoscaling.idleSeconds."""
ANNOTATION_IDLE_SINCE: Final = f"{GROUP}/idle-since"
"""On the same Nodes: since when no job has needed them (RFC 3339)."""
ANNOTATION_SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
ANNOTATION_DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"

MANAGED_BY_OPERATOR: Final = f"{GROUP}/operator"
"""In spec.managedBy: as without the field."""
MANAGED_BY_CLUSTERS: Final = f"{GROUP}/clusters"
"""In spec.managedBy: the job runs in the worker cluster where it starts soonest."""
LABEL_HUB: Final = f"{GROUP}/hub"
"""On a TrainingJob in a worker cluster: the uid of the namespace kube-system of the hub cluster that created it."""
ANNOTATION_HUB_JOB_UID: Final = f"{GROUP}/hub-job-uid"
"""On the same: the uid of the hub's TrainingJob."""
ANNOTATION_HUB_GENERATION: Final = f"{GROUP}/hub-generation"
"""On the same: the generation of the hub's spec that this spec is a copy of."""
ANNOTATION_OFFER: Final = f"{GROUP}/offer"
"""On the same: the number of the offer, status.cluster.offer of the hub's TrainingJob."""
ANNOTATION_MAY_START: Final = f"{GROUP}/may-start"
"""On the same: the number of the offer that the hub has fixed. Without it no run starts."""
ANNOTATION_GIVE_UP: Final = f"{GROUP}/give-up"
"""On a hub's TrainingJob: the number of the offer whose copy never runs again: its worker cluster is lost for good."""
FINALIZER_CLUSTERS: Final = f"{GROUP}/clusters"
"""On the hub's TrainingJob: its copy in a worker cluster is deleted first."""

GATE: Final = f"{GROUP}/place"
"""Scheduling gate that a pod of ours carries until its place is really free."""

MANAGER_OPERATOR: Final = "kube-synergy-operator"
MANAGER_PLAN: Final = "kube-synergy-plan"
"""Field manager of the extender's status.allocation and status.queue."""
MANAGER_AUTOSCALING: Final = "kube-synergy-autoscaling"
"""Field manager of what autoscalers are told on Nodes."""
MANAGER_PROGRESS: Final = "kube-synergy-progress"
"""Field manager of the extender's status.progress. Its own manager, because any replica writes progress while only the
leader writes the plan, and server-side apply drops the fields that a manager no longer sends."""

MANAGER_CLUSTERS: Final = "kube-synergy-clusters"
"""Field manager of the whole status of jobs that run in worker clusters."""

TOKEN_AUDIENCE: Final = "kube-synergy-extender"  # noqa: S105 - an audience, not a secret

EXIT_YIELDED: Final = 75
"""Exit code of a worker that checkpointed and left at its lease's end (EX_TEMPFAIL of sysexits.h)."""

RESOURCE_GPU: Final = "nvidia.com/gpu"
RESOURCE_SHARED_GPU: Final = "nvidia.com/gpu.shared"
"""The name of shared GPUs' replicas if NVIDIA's device plugin renames them."""
GPU_RESOURCES: Final = (RESOURCE_GPU, RESOURCE_SHARED_GPU)

MAX_JOB_NAME: Final = 50
"""Longest TrainingJob name: what the operator appends must still fit a 63-character label."""


def member_name(array: str, index: int) -> str:
    """TrainingJob of one index of an array; the index in the name makes creating it idempotent."""
    return f"{array}-{index}"


def service_name(job: str) -> str:
    """Headless Service of a job's workers; the prefix lets a job's name begin with a digit, a Service's must not."""
    return f"tj-{job}"


def gang_secret_name(job: str, uid: str) -> str:
    """Secret with the key that the workers of a job share; the uid distinguishes it from that of an earlier job of the
    same name."""
    return f"{service_name(job)}-gang-{uid}"


def worker_pod_name(job: str, run: int, rank: int) -> str:
    """Pod of one rank of one run; the run in the name makes creating it idempotent and never reuses a name."""
    return f"{job}-{run}-{rank}"


def master_address(job: str, namespace: str, run: int) -> str:
    """DNS name of rank 0, resolved by the headless Service."""
    return f"{worker_pod_name(job, run, 0)}.{service_name(job)}.{namespace}.svc"
