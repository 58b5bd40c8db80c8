"""What a TrainingJob holds: nodes, GPUs, CPU and memory, and until when (`status.allocation`, of the extender)."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, computed_field, model_validator

from synergy_api.base import ApiModel, Timestamp
from synergy_api.parts.sharing import SharedGPU


class NodeShare(ApiModel):
    """What one node gives the job."""

    node: Annotated[str, Field(description="Name of the node.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs on this node.")]
    cpu_millis: Annotated[int, Field(ge=1, description="CPU on this node in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory on this node in bytes.")]
    devices: Annotated[
        int | None,
        Field(ge=1, description="Where GPUs are shared: how many of the device plugin's devices the pods ask for."),
    ] = None
    resource: Annotated[
        str | None,
        Field(
            max_length=317,
            description="What GPUs or devices are called there, if not nvidia.com/gpu: nvidia.com/gpu.shared, or what "
            "the node's GPUPool says.",
        ),
    ] = None
    device_ids: Annotated[
        list[Annotated[str, Field(max_length=64)]],
        Field(
            max_length=256,
            description="With DRA: the UUIDs of the devices that the workers' claims select, from admission on.",
        ),
    ] = []
    capacity: Annotated[
        dict[str, str],
        Field(max_length=32, description="With DRA: what the claims ask for of each device that jobs share."),
    ] = {}


def _with_nodes(schema: dict[str, Any]) -> None:
    # pydantic leaves what is computed out of the schema of what is read
    schema["properties"]["nodes"] = {"type": "integer", "minimum": 0, "description": "How many nodes the place has."}


class Allocation(ApiModel):
    """What the job holds. Owned by the extender; written before anything acts on it."""

    model_config = ConfigDict(json_schema_extra=_with_nodes)

    run: Annotated[
        int, Field(ge=1, description="Grows by one with each new place; kept while only CPU and memory change.")
    ]
    purpose: Annotated[Literal["Train", "Profile"], Field(description="What the place is for.")] = "Train"
    state: Annotated[
        Literal["Granted", "Revoked", "Released"],
        Field(description="Granted holds its place, Revoked leaves it at leaseUntil, Released holds nothing."),
    ]
    admitted: Annotated[bool, Field(description="What the place needs is really free: the pods' gates may fall.")] = (
        False
    )
    round: Annotated[int, Field(ge=0, description="The round for which this place was granted.")] = 0
    lease_until: Annotated[
        Timestamp | None,
        Field(
            description="Of a revoked run, when it leaves: no worker is stopped before. Of a granted one, the end of "
            "the round for which it was granted: it holds its place until it is revoked."
        ),
    ] = None
    gpu_type: Annotated[str, Field(description="GPU type of the place.")] = ""
    workers: Annotated[list[NodeShare], Field(max_length=4096, description="What the job may use now, by node.")] = []
    planned: Annotated[
        list[NodeShare],
        Field(
            max_length=4096,
            description="What the plan gives it once others on the node have shrunk; empty if as `workers`.",
        ),
    ] = []
    steps_per_second: Annotated[float, Field(ge=0, description="Throughput the plan expects.")] = 0.0
    proportional_steps_per_second: Annotated[
        float, Field(ge=0, description="Throughput at the GPU-proportional share.")
    ] = 0.0
    estimated: Annotated[
        bool | None,
        Field(description="True where these throughputs are estimated: the job was never measured on this GPU type."),
    ] = None
    spread: Annotated[
        bool | None,
        Field(
            description="True where a placementSensitive policy gave it a place on more nodes than the fewest that "
            "could hold it."
        ),
    ] = None
    shared_gpu: Annotated[SharedGPU | None, Field(description="On nodes with shared GPUs.")] = None
    reason: Annotated[str, Field(description="Why a revoked job leaves, in words.")] = ""

    @computed_field
    def nodes(self) -> int:
        """How many nodes the place has: written for people and printer columns, never read."""
        return len(self.workers)

    @model_validator(mode="before")
    @classmethod
    def _drop_nodes(cls, wire: Any) -> Any:
        return {key: value for key, value in wire.items() if key != "nodes"} if isinstance(wire, dict) else wire
