"""The CustomResourceDefinitions: the models' schemas with names, scope, printer columns and rules around them."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from synergy_api.base import ApiModel
from synergy_api.generation.schema import Defaults, Schema, structural_schema
from synergy_api.names import ANNOTATION_VERSION, GROUP, PRODUCT_VERSION, VERSION
from synergy_api.resources.gpu_pool import GPUPoolSpec, GPUPoolStatus
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec, SchedulingPolicyStatus
from synergy_api.resources.tenant import NAME_RULES as TENANT_NAME_RULES
from synergy_api.resources.tenant import TenantSpec
from synergy_api.resources.tenant_status import TenantStatus
from synergy_api.resources.throughput_profile import ThroughputProfileSpec, ThroughputProfileStatus
from synergy_api.resources.training_job import TrainingJobSpec, TrainingJobStatus
from synergy_api.resources.training_job_rules import NAME_RULES


@dataclass(frozen=True)
class Column:
    """One printer column; a wide one shows with `kubectl get -o wide` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "date"]
    description: str
    wide: bool = False

    def to_wire(self) -> dict[str, Any]:
        """The column as the CustomResourceDefinition has it."""
        wire: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.wide:
            wire["priority"] = 1
        return {**wire, "description": self.description}


@dataclass(frozen=True)
class CustomResource:
    """One custom resource: its names and the models of its parts."""

    name: str
    plural: str
    short_name: str
    description: str
    namespaced: bool
    spec: type[ApiModel]
    status: type[ApiModel]
    columns: tuple[Column, ...]
    categories: tuple[str, ...] = ("kube-synergy",)
    rules: tuple[dict[str, str], ...] = ()
    defaults: Defaults = "all"
    """Which defaults of the spec the API server stores."""

    @property
    def crd_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date", "Time since it was created.")

KINDS: Final = (
    CustomResource(
        name="TrainingJob",
        plural="trainingjobs",
        short_name="tj",
        description="A deep-learning training job: how many GPUs it needs, what its workers run and until which step.",
        namespaced=True,
        spec=TrainingJobSpec,
        status=TrainingJobStatus,
        columns=(
            Column("Phase", ".status.phase", "string", "Where the job stands in its life."),
            Column(
                "Progress",
                ".status['summary','array']['progress','start']",
                "string",
                "Steps done of all steps; of an array its finished jobs of all.",
            ),
            Column(
                "GPUs",
                ".status.summary.gpus",
                "string",
                "GPUs with their type while it holds some; before that the number it waits for, without a type.",
            ),
            Column("Reason", ".status['queue','problem'].reason", "string", "Why it is not running."),
            Column("Queue", ".status.queue.position", "integer", "Position in the scheduling queue while it waits."),
            _AGE,
            Column("Start", ".status.queue.estimatedStart", "string", "When it will start, while it waits.", wide=True),
            Column("CPU", ".status.summary.cpu", "string", "CPUs given / the GPU-proportional share.", wide=True),
            Column("Memory", ".status.summary.memory", "string", "Memory given / the same share of it.", wide=True),
            Column("Speed", ".status.summary.speed", "string", "Measured speed, as last reported.", wide=True),
            Column("Preemptions", ".status.service.preemptions", "integer", "Runs that had to leave.", wide=True),
            Column("Partners", ".status.summary.partners", "string", "Jobs that share its GPU.", wide=True),
            Column("Run", ".status.allocation.run", "integer", "Number of its newest run.", wide=True),
            Column("Nodes", ".status.allocation.nodes", "integer", "Nodes it holds.", wide=True),
            Column("Cluster", ".status.cluster.name", "string", "The worker cluster that has it.", wide=True),
        ),
        categories=("all", "kube-synergy"),
        rules=tuple(NAME_RULES),
        defaults="values",
    ),
    CustomResource(
        name="GPUPool",
        plural="gpupools",
        short_name="gp",
        description="Nodes of one GPU type: what they cost, how they are shared and what of them is not for jobs.",
        namespaced=False,
        spec=GPUPoolSpec,
        status=GPUPoolStatus,
        columns=(
            Column("Type", ".spec.gpuType", "string", "GPU type of the pool."),
            Column("Nodes", ".status.nodes", "integer", "Ready nodes that the selector finds."),
            Column("GPUs", ".status.gpus", "integer", "Allocatable GPUs of these nodes."),
            Column("Sharing", ".spec.sharing.mode", "string", "How its GPUs are shared."),
            _AGE,
            Column("Price", ".spec.pricePerHour", "number", "Price of one GPU for an hour.", wide=True),
            Column("Replicas", ".spec.sharing.replicas", "integer", "Clients of one GPU.", wide=True),
        ),
    ),
    CustomResource(
        name="SchedulingPolicy",
        plural="schedulingpolicies",
        short_name="sp",
        description="How the cluster is scheduled. The one named default is in force, the others are ignored.",
        namespaced=False,
        spec=SchedulingPolicySpec,
        status=SchedulingPolicyStatus,
        columns=(
            Column("Policy", ".spec.policy", "string", "The order in which jobs should run."),
            Column("Mechanism", ".spec.mechanism", "string", "How CPU and memory are packed."),
            Column("Round", ".spec.roundSeconds", "integer", "Length of a round in seconds."),
            _AGE,
            Column("Policy-In-Force", ".status.inForce.policy", "string", "The policy that plans follow.", wide=True),
            Column("Mechanism-In-Force", ".status.inForce.mechanism", "string", "The mechanism in plans.", wide=True),
        ),
    ),
    CustomResource(
        name="ThroughputProfile",
        plural="throughputprofiles",
        short_name="tp",
        description="A measured profile under its fingerprint, shared by all jobs that would measure the same.",
        namespaced=False,
        spec=ThroughputProfileSpec,
        status=ThroughputProfileStatus,
        columns=(
            Column("Image", ".spec.image", "string", "Image of the measured job."),
            Column("GPUs", ".spec.gpus", "integer", "GPUs of the measured job."),
            Column("Measured", ".spec.measuredAt", "date", "Time since it was measured."),
            _AGE,
            Column("Batch", ".spec.batchSize", "integer", "Samples per training step.", wide=True),
        ),
    ),
    CustomResource(
        name="Tenant",
        plural="tenants",
        short_name="tnt",
        description="Namespaces that share the cluster as one: their GPUs, and the most that their jobs may ask for.",
        namespaced=False,
        spec=TenantSpec,
        status=TenantStatus,
        columns=(
            Column("Parent", ".spec.parent", "string", "The Tenant that it is part of."),
            Column("Guaranteed", ".status.summary.guaranteed", "string", "GPUs that plans guarantee."),
            Column("Used", ".status.summary.used", "string", "GPUs that its jobs hold."),
            Column("Borrowed", ".status.summary.borrowed", "string", "GPUs used beyond the guarantee."),
            Column("Waiting", ".status.summary.waiting", "string", "GPUs that its jobs wait for."),
            _AGE,
            Column("Namespaces", ".status.namespaces", "integer", "Namespaces that belong to it.", wide=True),
            Column("Jobs", ".status.jobs", "integer", "Unfinished jobs that count for the tenant.", wide=True),
            Column("Weight", ".spec.weight", "number", "Its share beside those of its siblings.", wide=True),
            Column("Max-Weight", ".spec.caps.maxWeight", "number", "Largest weight of a job.", wide=True),
            Column("Never-Preempted", ".status.neverPreemptedGPUs", "integer", "GPUs held for good.", wide=True),
        ),
        rules=tuple(TENANT_NAME_RULES),
    ),
)


def custom_resource_definition(kind: CustomResource) -> dict[str, Any]:
    """The CustomResourceDefinition (apiextensions.k8s.io/v1) of one kind."""
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(kind)},
        "additionalPrinterColumns": [column.to_wire() for column in kind.columns],
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name, "annotations": {ANNOTATION_VERSION: PRODUCT_VERSION}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": list(kind.categories),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def schema_of(name: str, *parts: str) -> Schema:
    """The schema of these parts, such as `status`, of the objects of one kind."""
    kind = next(kind for kind in KINDS if kind.name == name)
    properties = object_schema(kind)["properties"]
    return {"type": "object", "properties": {part: properties[part] for part in parts}}


def object_schema(kind: CustomResource) -> Schema:
    """The structural schema of whole objects of one kind."""
    properties: Schema = {
        "apiVersion": {"type": "string", "description": "Version of this schema."},
        "kind": {"type": "string", "description": "Kind of this object."},
        "metadata": {"type": "object"},
        "spec": structural_schema(kind.spec, defaults=kind.defaults),
        "status": structural_schema(kind.status, defaults="none"),
    }
    schema: Schema = {
        "description": kind.description,
        "type": "object",
        "required": ["spec"],
        "properties": properties,
    }
    if kind.rules:
        schema["x-kubernetes-validations"] = list(kind.rules)
    return schema
