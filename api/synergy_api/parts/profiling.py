"""`spec.profile`, `spec.dataset` and `spec.throughput` of a TrainingJob: how its speed is measured."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from synergy_api.base import ApiModel, PositiveQuantity
from synergy_api.parts.profile import MatrixList


class Dataset(ApiModel):
    """Size of the training data: what the memory axis of the sensitivity matrix is computed from."""

    bytes: Annotated[int, Field(ge=1, description="Size of the data set in bytes.")]
    samples: Annotated[int, Field(ge=1, description="Number of samples in the data set.")]


_PROFILE_RULES: list[Any] = [
    {
        "rule": "self.mode != 'Provided' || has(self.matrices) && self.matrices.size() > 0",
        "message": "matrices must have at least one matrix when mode is Provided",
        "fieldPath": ".matrices",
    }
]


class ProfileSpec(ApiModel):
    """How the sensitivity matrix comes about."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _PROFILE_RULES})

    mode: Annotated[
        Literal["Auto", "Sweep", "Provided", "Skip"],
        Field(
            description="Auto measures it at few points, Sweep at all of a grid of CPU and memory, Provided takes "
            "`matrices`, Skip schedules at the GPU-proportional share."
        ),
    ] = "Auto"
    matrices: Annotated[
        MatrixList, Field(max_length=16, description="With mode Provided: a matrix for each GPU type.")
    ] = []
    steps: Annotated[int, Field(ge=2, le=100000, description="Training steps measured at each CPU point.")] = 50
    warmup_steps: Annotated[int, Field(ge=0, le=100000, description="Steps run before the measurement begins.")] = 5
    timeout_seconds: Annotated[
        int, Field(ge=5, le=86400, description="A profile run that takes longer has failed.")
    ] = 600
    cpu_step: Annotated[
        PositiveQuantity | None,
        Field(description="Distance of neighbouring CPU points; by default the node's CPUs in 24 equal steps."),
    ] = None
    counters: Annotated[
        Literal["Auto", "Nsight", "Off"],
        Field(
            description="Where `compute` and `bandwidth` of the job's usage come from. Auto: DCGM or NVML's GPM "
            "interface, where the node has one. Nsight: a further profile run of two steps under Nsight Compute, which "
            "the image must have. Off: utilisation, an upper bound."
        ),
    ] = "Auto"


class Throughput(ApiModel):
    """How training steps are seen where the script does not use the library."""

    regex: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            description="Python regular expression that is searched for in each line the job prints. A match is a step "
            "done; a group named step says how many are done since the job began, a group named speed how many are "
            "done in a second.",
        ),
    ]
