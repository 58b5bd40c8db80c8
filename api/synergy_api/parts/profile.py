"""Sensitivity matrices in a spec (given) or a status (measured)."""

from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from synergy_api.base import BY_GPU_TYPE, ApiModel, Timestamp
from synergy_api.parts.usage import UsageSource
from synergy_core.model.snapshot import FASTEST, SLOWEST

MOST_RELATIVE_ERROR: Final = 1e6
"""The largest relative error of a speed. Its square must stay a number."""

_ClientThreadPercent = Annotated[
    int | None,
    Field(
        ge=1,
        le=100,
        description="Of each GPU's threads, what MPS left the job while it was measured: the throughput has that limit "
        "in it. Absent: all of them.",
    ),
]
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
]
_ASCENDING: list[JsonValue] = [
    {
        "rule": "self.isSorted() && self.all(a, self.exists_one(b, b == a))",
        "message": "must ascend, each value once",
    }
]


def _ascends(axis: list[int]) -> list[int]:
    if any(right <= left for left, right in pairwise(axis)):
        raise ValueError("must ascend, each value once")
    return axis


_Axis = Annotated[
    list[Annotated[int, Field(ge=1)]],
    AfterValidator(_ascends),
    Field(min_length=1, max_length=64, json_schema_extra={"x-kubernetes-validations": _ASCENDING}),
]
# (The API server takes a bound for a whole number, so a 0 is kept out by an exclusive one only.)
_Row = Annotated[
    list[Annotated[float, Field(gt=SLOWEST, le=FASTEST, allow_inf_nan=False)]], Field(min_length=1, max_length=64)
]


class SensitivityMatrix(ApiModel):
    """Throughput of the whole job for each CPU and memory allotment on one GPU type (Synergy, section 3.1).

    `steps_per_second[i][j]` is the speed with `cpu_millis[i]` and `memory_bytes[j]` for the job with all its GPUs.
    """

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _SHAPE_RULES})

    gpu_type: Annotated[str, Field(min_length=1, max_length=63, description="GPU type the matrix was measured on.")]
    cpu_millis: Annotated[_Axis, Field(description="CPU axis in milli-CPU, ascending.")]
    memory_bytes: Annotated[_Axis, Field(description="Memory axis in bytes, ascending.")]
    steps_per_second: Annotated[
        list[_Row],
        Field(
            min_length=1,
            max_length=64,
            description="A row per CPU value, a column per memory value, in training steps per second, above zero.",
        ),
    ]
    client_thread_percent: _ClientThreadPercent = None

    @model_validator(mode="after")
    def _shape(self) -> "SensitivityMatrix":
        if len(self.steps_per_second) != len(self.cpu_millis):
            raise ValueError("stepsPerSecond must have one row for each value of cpuMillis")
        if any(len(row) != len(self.memory_bytes) for row in self.steps_per_second):
            raise ValueError("each row of stepsPerSecond must have one value for each value of memoryBytes")
        return self


def _one_of_each_type(matrices: list[SensitivityMatrix]) -> list[SensitivityMatrix]:
    types = [matrix.gpu_type for matrix in matrices]
    for gpu_type in types:
        if types.count(gpu_type) > 1:
            raise ValueError(f"there is more than one matrix for gpuType {gpu_type}")
    return matrices


MatrixList = Annotated[
    list[SensitivityMatrix], AfterValidator(_one_of_each_type), Field(json_schema_extra={**BY_GPU_TYPE})
]
"""Matrices of one job, at most one for each GPU type."""


class DemandVector(ApiModel):
    """Smallest CPU and memory that saturate the job's throughput on one GPU type (Synergy, section 3.2)."""

    gpu_type: Annotated[str, Field(description="GPU type it holds for.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs of the whole job.")]
    cpu_millis: Annotated[int, Field(ge=1, description="CPU of the whole job in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory of the whole job in bytes.")]


DemandList = Annotated[list[DemandVector], Field(json_schema_extra={**BY_GPU_TYPE})]
"""Demand vectors of one job, at most one for each GPU type."""


def _at_most(value: Any) -> Any:
    """The API server refuses a larger error. An object may have been stored with one before: it must stay readable."""
    return min(value, MOST_RELATIVE_ERROR) if isinstance(value, int | float) else value


_RelativeError = Annotated[float, Field(ge=0, le=MOST_RELATIVE_ERROR), BeforeValidator(_at_most)]
_RelativeErrorOrNone = Annotated[float | None, Field(ge=0, le=MOST_RELATIVE_ERROR), BeforeValidator(_at_most)]


class ProfileRun(ApiModel):
    """What one profile Job found."""

    steps_per_second: Annotated[float, Field(gt=0, description="Mean throughput in training steps per second.")]
    relative_error: Annotated[
        _RelativeError, Field(description="Standard error of the mean step rate, relative to it.")
    ] = 0.0
    job: Annotated[str, Field(description="Name of the Kubernetes Job that measured it.")] = ""


class ProfilePoint(ApiModel):
    """One measured point: the mean of its runs."""

    gpu_type: Annotated[str, Field(description="GPU type it was measured on.")]
    cpu_millis: Annotated[int, Field(ge=1, description="CPU limit of the runs in milli-CPU.")]
    memory_bytes: Annotated[
        int,
        Field(
            ge=1, description="Memory limit of the runs in bytes; with hitRate the memory that this rate stands for."
        ),
    ]
    steps_per_second: Annotated[float, Field(gt=0, description="Mean throughput in training steps per second.")]
    relative_error: Annotated[
        _RelativeError,
        Field(description="Standard error of the mean step rate of the runs themselves, relative to it."),
    ] = 0.0
    low_steps_per_second: Annotated[
        float | None, Field(ge=0, description="Lower end of the 95 % confidence interval, once the series is done.")
    ] = None
    high_steps_per_second: Annotated[
        float | None, Field(ge=0, description="Upper end of the 95 % confidence interval.")
    ] = None
    hit_rate: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Fraction of the data that counted as cached, at points that check the memory model; at all "
            "others it is all of it.",
        ),
    ] = None
    storage_bytes_per_second: Annotated[
        int | None, Field(ge=1, description="What these runs' reads from storage were held to.")
    ] = None
    predicted_steps_per_second: Annotated[
        float | None, Field(ge=0, description="What the memory model says of this point.")
    ] = None
    max_rss_bytes: Annotated[
        int,
        Field(
            ge=0,
            description="Peak memory of a run's processes in bytes, the data cache left out; 0 where it is not known.",
        ),
    ] = 0
    cached: Annotated[bool, Field(description="The job reads its data through the library's cache.")] = False
    largest_tensor_bytes: Annotated[
        int | None,
        Field(ge=1, description="Bytes of the model's largest trained tensor, if the job reported its model."),
    ] = None
    model_bytes: Annotated[int | None, Field(ge=1, description="Bytes of all trained tensors of the model.")] = None
    epoch_steps: Annotated[
        int | None, Field(ge=1, description="Steps of one pass over the data, where the loader knows them.")
    ] = None
    gpu_compute: Annotated[
        float | None,
        Field(ge=0, le=1, description="How busy its GPUs' multiprocessors were, where that was sampled."),
    ] = None
    gpu_bandwidth: Annotated[float | None, Field(ge=0, le=1, description="How busy their memory was.")] = None
    gpu_source: Annotated[UsageSource | None, Field(description="Source of gpuCompute and gpuBandwidth.")] = None
    gpu_occupancy: Annotated[
        float | None, Field(ge=0, le=1, description="Resident warps as part of the most that fit, by counters.")
    ] = None
    gpu_utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="Beside counters: part of the time in which any kernel ran, by nvidia-smi."),
    ] = None
    gpu_memory_utilization: Annotated[
        float | None,
        Field(ge=0, le=1, description="Beside counters: part of the time in which any memory was read or written."),
    ] = None
    gpu_problem: Annotated[
        str, Field(max_length=512, description="Why there are no counters although they were wanted.")
    ] = ""
    gpu_memory_bytes: Annotated[
        int | None, Field(ge=0, description="The most of one GPU's memory that was in use.")
    ] = None
    client_thread_percent: _ClientThreadPercent = None
    runs: Annotated[list[ProfileRun], Field(max_length=64, description="The runs, in the order of their end.")] = []
    job: Annotated[str, Field(description="Name of the Kubernetes Job that measured it last.")] = ""
    measured_at: Annotated[Timestamp | None, Field(description="When the last run ended.")] = None


class ProfileConfidence(ApiModel):
    """How reliable the measured speeds on one GPU type are."""

    gpu_type: Annotated[str, Field(description="GPU type it holds for.")]
    level: Annotated[
        Literal["High", "Fair", "Low"],
        Field(description="High: uncertainty and memory error within 5 %, Fair: within 15 %."),
    ]
    uncertainty: Annotated[
        _RelativeError,
        Field(description="Half the width of the widest 95 % confidence interval of a CPU point, relative to it."),
    ]
    runs: Annotated[int, Field(ge=1, description="Profile runs on this GPU type.")]
    run_to_run: Annotated[
        _RelativeErrorOrNone,
        Field(
            description="Standard deviation of a run's speed around that of its point, relative to it; absent where no "
            "point was measured twice: the intervals then know of the noise within a run only.",
        ),
    ] = None
    memory_error: Annotated[
        _RelativeErrorOrNone,
        Field(description="How far the memory model was off at the worst point that checked it, relative."),
    ] = None
    memory_points: Annotated[int, Field(ge=0, description="Points that checked the memory model.")] = 0
    storage_bytes_per_second: Annotated[
        int | None,
        Field(
            ge=1, description="Storage bandwidth of a profile pod that the memory model uses: of the pool, or measured."
        ),
    ] = None


"""Measured usage of one job, at most once for each GPU type."""

ConfidenceList = Annotated[list[ProfileConfidence], Field(json_schema_extra={**BY_GPU_TYPE})]
"""Confidence in one job's speeds, at most once for each GPU type."""


class ProfileRequest(ApiModel):
    """The place a profile series asks for: planned like a job, first in line for free GPUs."""

    gpu_type: Annotated[str, Field(description="GPU type the series measures.")]
    gpus: Annotated[int, Field(ge=1, description="GPUs the runs need.")]
    cpu_millis: Annotated[int, Field(ge=1, description="The highest CPU point of the series in milli-CPU.")]
    memory_bytes: Annotated[int, Field(ge=1, description="Memory limit of the runs in bytes.")]
    shared: Annotated[
        bool | None,
        Field(description="The GPU must be a shared one: the job is measured beside reference jobs there."),
    ] = None
