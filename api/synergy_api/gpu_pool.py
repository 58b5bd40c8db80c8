"""GPUPool: nodes of one GPU type, what they cost and what of them is not for jobs."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from synergy_api.base import ApiModel, Condition, Quantity


class SystemReserved(ApiModel):
    """CPU and memory of each node that the plan leaves alone, beyond what its pods already hold."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class PoolSharing(ApiModel):
    """How the pool's GPUs are shared."""

    mode: Literal["None", "MPS"] = "None"
    replicas: Annotated[int, Field(ge=1, le=48, description="Clients of one GPU under MPS.")] = 1


_RULES: list[Any] = [
    {
        "rule": "!has(self.sharing) || self.sharing.mode == 'MPS' || self.sharing.replicas == 1",
        "message": "sharing.replicas above 1 needs sharing.mode MPS",
        "fieldPath": ".sharing",
    }
]


class GPUPoolSpec(ApiModel):
    """What the pool is."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RULES})

    node_selector: Annotated[
        dict[str, str], Field(min_length=1, max_length=32, description="Labels that the pool's nodes carry.")
    ]
    gpu_type: Annotated[
        str, Field(min_length=1, max_length=63, description="Name of the GPU type that jobs and matrices use.")
    ]
    price_per_hour: Annotated[float, Field(ge=0, description="Price of one GPU for an hour, in any one currency.")] = (
        0.0
    )
    storage_bandwidth: Annotated[
        int | None, Field(ge=1, description="Bytes per second that one node reads from storage; for the memory model.")
    ] = None
    system_reserved: SystemReserved = SystemReserved()
    sharing: PoolSharing = PoolSharing()


class GPUPoolStatus(ApiModel):
    """What the extender sees of the pool."""

    nodes: Annotated[int, Field(ge=0)] = 0
    gpus: Annotated[int, Field(ge=0)] = 0
    conditions: Annotated[
        list[Condition],
        Field(
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}, max_length=32
        ),
    ] = []
