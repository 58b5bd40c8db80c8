"""Sensitivity matrices as they stand in a spec (given) or a status (measured)."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, model_validator

from synergy_api.base import ApiModel, Timestamp

_SHAPE_RULES: list[JsonValue] = [
    {
        "rule": "self.stepsPerSecond.size() == self.cpuMillis.size()",
        "message": "stepsPerSecond must have one row for each value of cpuMillis",
        "fieldPath": ".stepsPerSecond",
    },
    {
        "rule": "self.stepsPerSecond.all(row, row.size() == self.memoryBytes.size())",
        "message": "each row of stepsPerSecond must have one value for each value of memoryBytes",
        "fieldPath": ".stepsPerSecond",
    },
    {
        "rule": "self.stepsPerSecond.all(row, row.all(value, value > 0.0))",
        "message": "stepsPerSecond must be above zero everywhere",
        "fieldPath": ".stepsPerSecond",
    },
    {
        "rule": "self.cpuMillis.all(a, self.cpuMillis.filter(b, b == a).size() == 1) && self.cpuMillis.isSorted()",
        "message": "cpuMillis must ascend, each value once",
        "fieldPath": ".cpuMillis",
    },
    {
        "rule": "self.memoryBytes.isSorted() && self.memoryBytes.all(a, self.memoryBytes.filter(b, b == a).size() == 1)",  # noqa: E501
        "message": "memoryBytes must ascend, each value once",
        "fieldPath": ".memoryBytes",
    },
]


class SensitivityMatrix(ApiModel):
    """Throughput of the whole job for each CPU and memory allotment on one GPU type (Synergy, section 3.1).

    `steps_per_second[i][j]` is the speed with `cpu_millis[i]` and `memory_bytes[j]` for the job with all its GPUs.
    """

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SHAPE_RULES})

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type the matrix was measured on.")]
    cpu_millis: Annotated[
        list[Annotated[int, Field(ge=1)]],
        Field(min_length=1, max_length=64, description="CPU axis in milli-CPU, ascending."),
    ]
    memory_bytes: Annotated[
        list[Annotated[int, Field(ge=1)]],
        Field(min_length=1, max_length=64, description="Memory axis in bytes, ascending."),
    ]
    steps_per_second: Annotated[
        list[Annotated[list[float], Field(min_length=1, max_length=64)]],
        Field(
            min_length=1,
            max_length=64,
            description="A row per CPU value, a column per memory value, in training steps per second.",
        ),
    ]

    @model_validator(mode="after")
    def _shape(self) -> "SensitivityMatrix":
        if len(self.steps_per_second) != len(self.cpu_millis):
            raise ValueError("stepsPerSecond must have one row for each value of cpuMillis")
        if any(len(row) != len(self.memory_bytes) for row in self.steps_per_second):
            raise ValueError("each row of stepsPerSecond must have one value for each value of memoryBytes")
        return self


class DemandVector(ApiModel):
    """Smallest CPU and memory that saturate the job's throughput on one GPU type (Synergy, section 3.2)."""

    gpu_type: str
    gpus: Annotated[int, Field(ge=1)]
    cpu_millis: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(ge=1)]


class ProfilePoint(ApiModel):
    """One measured CPU point: what one profile Job found."""

    gpu_type: str
    cpu_millis: Annotated[int, Field(ge=1, description="CPU limit of the run.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory limit of the run.")]
    steps_per_second: Annotated[float, Field(gt=0)]
    relative_error: Annotated[
        float, Field(ge=0, description="Standard error of the mean step rate, relative to it.")
    ] = 0.0
    job: Annotated[str, Field(description="Name of the Kubernetes Job that measured it.")] = ""
    measured_at: Timestamp | None = None


class ProfileRequest(ApiModel):
    """The place a profile series asks for: planned like a job, first in line for free GPUs."""

    gpu_type: str
    gpus: Annotated[int, Field(ge=1)]
    cpu_millis: Annotated[int, Field(ge=1, description="The highest CPU point of the series.")]
    memory_bytes: Annotated[int, Field(ge=1)]
