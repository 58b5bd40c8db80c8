"""GPUPool: nodes of one GPU type, what they cost and what of them is not for jobs."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from synergy_api.base import ApiModel, Conditions, Quantity, Timestamp
from synergy_api.resources.pool_autoscaling import PoolAutoscaling


class SystemReserved(ApiModel):
    """CPU and memory of each node that the plan leaves alone, beyond what its pods already hold."""

    cpu: Annotated[Quantity | None, Field(description="CPU of each node, such as 2 or 500m.")] = None
    memory: Annotated[Quantity | None, Field(description="Memory of each node, such as 8Gi.")] = None


_SHARING_RULES: list[Any] = [
    {
        "rule": "self.mode == 'MPS' || self.replicas == 1",
        "message": "replicas above 1 needs mode MPS",
        "fieldPath": ".replicas",
    },
    {
        "rule": "self.mode != 'MPS' || self.replicas > 1",
        "message": "mode MPS needs replicas above 1: with one the device plugin shares nothing",
        "fieldPath": ".replicas",
    },
]


class PoolSharing(ApiModel):
    """How the pool's GPUs are shared."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SHARING_RULES})

    mode: Annotated[
        Literal["None", "MPS"], Field(description="None gives each GPU to one job, MPS lets jobs share one.")
    ] = "None"
    replicas: Annotated[int, Field(ge=1, le=48, description="Clients of one GPU under MPS.")] = 1
    preference: Annotated[
        Literal["Distributed", "Packed"],
        Field(
            description="Which GPU the device plugin prefers for a new client, as its "
            "--shared-devices-allocation-policy says. On nodes of several GPUs partners can be chosen with Packed only."
        ),
    ] = "Distributed"


_BACKEND_RULES: list[Any] = [
    {
        "rule": "(self.backend == 'DRA') == has(self.deviceClass)",
        "message": "backend DRA needs a deviceClass, and no other backend has one",
        "fieldPath": ".deviceClass",
    },
    {
        "rule": "self.backend == 'Plugin' || !has(self.resource)",
        "message": "resource is for backend Plugin",
        "fieldPath": ".resource",
    },
]


class PoolDevices(ApiModel):
    """How the pool's nodes offer their GPUs."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _BACKEND_RULES})

    backend: Annotated[
        Literal["Plugin", "DRA"],
        Field(
            description="Plugin counts a resource of the nodes' status, DRA devices of ResourceSlices: each worker "
            "then has a ResourceClaim."
        ),
    ] = "Plugin"
    resource: Annotated[
        str | None,
        Field(
            min_length=3,
            max_length=253,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
            description="The resource of the device plugin that a job's GPUs are, such as amd.com/gpu or the MIG "
            "profile nvidia.com/mig-1g.10gb. Other devices of the nodes are left to other pods. Without it "
            "nvidia.com/gpu, or nvidia.com/gpu.shared.",
        ),
    ] = None
    device_class: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=190,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            description="For DRA: the DeviceClass that the claims of workers name, such as gpu.nvidia.com.",
        ),
    ] = None
    driver: Annotated[
        str | None,
        Field(min_length=1, max_length=63, description="For DRA: the driver of the devices, if not as deviceClass."),
    ] = None
    attributes: Annotated[
        dict[str, str],
        Field(
            max_length=8,
            description="For DRA: attributes that a device has if it is a GPU of the pool, such as type: gpu. The "
            "DeviceClass must select the same devices.",
        ),
    ] = {}


_DEVICE_RULES: list[Any] = [
    {
        "rule": "!has(self.devices) || !has(self.devices.resource) || "
        "!self.devices.resource.startsWith('nvidia.com/mig-') || !has(self.sharing) || self.sharing.mode == 'None'",
        "message": "MIG devices cannot be shared: the device plugin offers no MPS on them",
        "fieldPath": ".sharing",
    },
    {
        "rule": "!has(self.devices) || self.devices.backend != 'DRA' || !has(self.autoscaling)",
        "message": "a pool with backend DRA cannot grow: a ProvisioningRequest asks for a device plugin's resource",
        "fieldPath": ".autoscaling",
    },
]

_WINDOW_RULES: list[Any] = [
    {"rule": "self.end > self.start", "message": "end must be after start", "fieldPath": ".end"}
]


class MaintenanceWindow(ApiModel):
    """A time in which no job runs on the pool's nodes."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _WINDOW_RULES})

    start: Annotated[Timestamp, Field(description="When the nodes must be empty, RFC 3339.")]
    end: Annotated[Timestamp, Field(description="When they take jobs again, RFC 3339.")]


_SPEC_RULES: list[Any] = [
    {
        "rule": "!has(self.topologyBandwidth) || self.topologyBandwidth.all(key, has(self.topology) && key in "
        "self.topology)",
        "message": "topologyBandwidth names a label key that is not in topology",
        "fieldPath": ".topologyBandwidth",
    }
]


class GPUPoolSpec(ApiModel):
    """What the pool is."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [*_DEVICE_RULES, *_SPEC_RULES]})

    node_selector: Annotated[
        dict[str, str], Field(min_length=1, max_length=32, description="Labels that the pool's nodes carry.")
    ]
    gpu_type: Annotated[
        str, Field(min_length=1, max_length=63, description="Name of the GPU type that jobs and matrices use.")
    ]
    price_per_hour: Annotated[
        float, Field(ge=0, le=1e9, description="Price of one GPU for an hour, in any one currency.")
    ] = 0.0
    storage_bandwidth: Annotated[
        int | None, Field(ge=1, description="Bytes per second that one node reads from storage; for the memory model.")
    ] = None
    system_reserved: SystemReserved = SystemReserved()
    devices: PoolDevices = PoolDevices()
    sharing: PoolSharing = PoolSharing()
    topology: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=317)]],
        Field(
            max_length=4,
            description="Keys of the node labels that say what a node is part of, the widest first, such as those of "
            "its block, rack and NVLink domain. Gangs of several nodes go to the narrowest that holds them.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ] = []
    topology_bandwidth: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=1 << 50)]],
        Field(
            max_length=4,
            description="Measured bytes per second of a node's link to other nodes of its domain, by the label key "
            "in topology. With it, placementSensitive policies compute what a job loses at each level that it was not "
            "measured at.",
        ),
    ] = {}
    maintenance: Annotated[
        list[MaintenanceWindow],
        Field(
            max_length=64,
            description="Times in which no job runs on the pool's nodes. Jobs leave at the last end of a round before.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ] = []
    autoscaling: Annotated[
        PoolAutoscaling | None,
        Field(description="How the pool grows. By default no node is asked for."),
    ] = None


class FailingNodeStatus(ApiModel):
    """A node that keeps failing jobs."""

    node: Annotated[str, Field(description="Name of the node.")]
    state: Annotated[
        Literal["Avoided", "Retrying", "Probing", "Reported"],
        Field(
            description="Avoided takes no job, Retrying takes one, Probing waits how that one fares, Reported takes "
            "jobs because too many nodes of the type look so."
        ),
    ]
    jobs: Annotated[int, Field(ge=0, description="Jobs that failed there.")]
    retry_at: Annotated[Timestamp, Field(description="When one job may try it.")]


class GPUPoolStatus(ApiModel):
    """What the extender sees of the pool."""

    nodes: Annotated[int, Field(ge=0, description="Ready nodes that the selector finds.")] = 0
    gpus: Annotated[int, Field(ge=0, description="Allocatable GPUs of these nodes.")] = 0
    failing_nodes: Annotated[
        list[FailingNodeStatus], Field(max_length=64, description="Nodes that keep failing jobs, by name.")
    ] = []
    nodes_asked_for: Annotated[
        int | None, Field(ge=0, description="Nodes that are asked for and not there yet; of a pool with autoscaling.")
    ] = None
    nodes_idle: Annotated[
        int | None,
        Field(
            ge=0, description="Nodes that no job has had for spec.autoscaling.idleSeconds; of a pool with autoscaling."
        ),
    ] = None
    conditions: Conditions = []
