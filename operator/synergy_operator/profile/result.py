"""The harness's result of a profile run, from the container's termination message."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from synergy_api.parts.profile import MOST_RELATIVE_ERROR
from synergy_api.parts.usage import Traffic, UsageSource
from synergy_api.reasons import Reason
from synergy_core.model.snapshot import FASTEST, SLOWEST
from synergy_operator.views.pod import ContainerView

_HARNESS_REASONS: Final = {
    "Crashed": Reason.PROFILE_CRASHED,
    "NoSteps": Reason.PROFILE_NO_STEPS,
    "Timeout": Reason.PROFILE_TIMEOUT,
    "TooNoisy": Reason.PROFILE_TOO_NOISY,
    "BadCommand": Reason.PROFILE_BAD_COMMAND,
}
_LONGEST_PROBLEM: Final = 600
_LONGEST_MESSAGE: Final = 200
"""Characters that are told of a message that is none of the harness's."""
_CUT: Final = "... "
_MOST_BYTES: Final = 1 << 50
"""The most bytes that a job may report, of its model and of its memory."""
_MOST_STEPS: Final = 1 << 40
"""The most steps that a job may report, of an epoch and of a run."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class _Gpu(_Message):
    compute: Annotated[float, Field(ge=0, le=1)]
    bandwidth: Annotated[float, Field(ge=0, le=1)]
    memory_bytes: Annotated[int, Field(ge=0, le=_MOST_BYTES)]
    source: UsageSource = "Utilization"
    occupancy: Annotated[float | None, Field(ge=0, le=1)] = None
    utilization: Annotated[float | None, Field(ge=0, le=1)] = None
    memory_utilization: Annotated[float | None, Field(ge=0, le=1)] = None
    problem: Annotated[str, Field(max_length=512)] = ""


_Bytes = Annotated[int, Field(ge=1, le=_MOST_BYTES)]


class _Traffic(_Message):
    source: Literal["Sockets", "NCCL"]
    workers: Annotated[int, Field(ge=2, le=1 << 16)]
    bytes_per_step: _Bytes
    model_bytes: _Bytes
    sending_seconds: Annotated[float | None, Field(ge=0)] = None
    message_bytes: _Bytes | None = None
    largest_message_bytes: _Bytes | None = None
    overlap: Annotated[float | None, Field(ge=0, le=1)] = None


def _or_none(value: object, parse: ValidatorFunctionWrapHandler) -> object:
    """An invalid value is ignored, and the point still counts."""
    try:
        return parse(value)
    except ValidationError:
        return None


_Mark = tuple[Annotated[float, Field(ge=0)], Annotated[int, Field(ge=0, le=_MOST_STEPS)]]


class _Together(_Message):
    marks: Annotated[tuple[_Mark, ...], Field(max_length=128)]
    gpus: Annotated[tuple[Annotated[str, Field(max_length=128)], ...], Field(max_length=16)] = ()

    @field_validator("marks")
    @classmethod
    def _ascend(cls, marks: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
        if any(after[0] <= before[0] or after[1] < before[1] for before, after in pairwise(marks)):
            raise ValueError("must ascend")
        return marks


class _Measured(_Message):
    outcome: Literal["measured"]
    steps_per_second: Annotated[float, Field(gt=SLOWEST, le=FASTEST)]
    relative_error: Annotated[float, Field(ge=0, le=MOST_RELATIVE_ERROR)] = 0.0
    max_rss_bytes: Annotated[int, Field(ge=0, le=_MOST_BYTES)] = 0
    cached: bool = False
    largest_tensor_bytes: int | None = None
    model_bytes: int | None = None
    epoch_steps: Annotated[int | None, Field(ge=1, le=_MOST_STEPS), WrapValidator(_or_none)] = None
    gpu: Annotated[_Gpu | None, WrapValidator(_or_none)] = None
    traffic: Annotated[_Traffic | None, WrapValidator(_or_none)] = None
    together: Annotated[_Together | None, WrapValidator(_or_none)] = None

    @property
    def tensors(self) -> tuple[int, int] | None:
        largest, model = self.largest_tensor_bytes, self.model_bytes
        if largest is None or model is None or not 0 < largest <= model <= _MOST_BYTES:
            return None
        return largest, model


class _Failed(_Message):
    outcome: Literal["failed"]
    reason: Literal["Crashed", "NoSteps", "Timeout", "TooNoisy", "BadCommand"]
    message: str = ""
    log_tail: str = ""


_MESSAGE: Final[TypeAdapter[_Measured | _Failed]] = TypeAdapter(
    Annotated[_Measured | _Failed, Field(discriminator="outcome")]
)


@dataclass(frozen=True, slots=True)
class GpuUse:
    """What the run used of its GPUs: parts from 0 to 1, and bytes."""

    compute: float
    bandwidth: float
    memory_bytes: int
    source: UsageSource = "Utilization"
    occupancy: float | None = None
    utilization: float | None = None
    memory_utilization: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SeenTogether:
    """Of a run beside another one: moments (Unix seconds) with the steps done by then, and the GPUs' UUIDs."""

    marks: tuple[tuple[float, int], ...]
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """A point was measured."""

    steps_per_second: float
    relative_error: float
    max_rss_bytes: int
    cached: bool = False
    tensors: tuple[int, int] | None = None
    """Bytes of the model's largest tensor, and of all of its tensors."""
    epoch_steps: int | None = None
    gpu: GpuUse | None = None
    traffic: Traffic | None = None
    together: SeenTogether | None = None


@dataclass(frozen=True, slots=True)
class MeasurementFailure:
    """A point was not measured, and the reason."""

    reason: Reason
    problem: str


def without_middle(text: str, most: int) -> str:
    """The text; of one of more than `most` characters its beginning and its end: the last line of an output tells what
    went wrong."""
    if len(text) <= most:
        return text
    end = (most - len(_CUT)) // 2
    return text[: most - len(_CUT) - end] + _CUT + text[len(text) - end :]


def _with_end(problem: str, output: str) -> str:
    """The problem and as much of the output's end as there is room for: what went wrong stands in its last lines."""
    told = f"{problem[:_LONGEST_PROBLEM]}; its last output: "
    room = _LONGEST_PROBLEM - len(told)
    if not output or room <= len(_CUT):
        return problem[:_LONGEST_PROBLEM]
    return told + (output if len(output) <= room else _CUT + output[len(_CUT) - room :])


def _wrong(error: ValidationError) -> str:
    """The first field of a harness's message that is wrong, and the reason; empty if the message is none of its own."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"][1:])  # the first part is the outcome
    return f": {field}: {first['msg']}" if field else ""


def read_result(container: ContainerView) -> MeasuredPoint | MeasurementFailure:
    """The result of a harness that has ended. Any other message of the user's container is a failure."""
    if container.reason == "OOMKilled":
        return MeasurementFailure(Reason.PROFILE_OUT_OF_MEMORY, "killed for memory")
    try:
        message = _MESSAGE.validate_json(container.message)
    except ValidationError as error:
        told = without_middle(container.message.strip(), _LONGEST_MESSAGE)
        detail = f", termination message {told!r}{_wrong(error)}" if told else ""
        return MeasurementFailure(Reason.PROFILE_NO_RESULT, f"exit code {container.exit_code}{detail}")
    if isinstance(message, _Failed):
        problem = message.message or message.reason
        return MeasurementFailure(_HARNESS_REASONS[message.reason], _with_end(problem, message.log_tail.strip()))
    gpu = message.gpu
    return MeasuredPoint(
        message.steps_per_second,
        message.relative_error,
        message.max_rss_bytes,
        message.cached,
        message.tensors,
        message.epoch_steps,
        None if gpu is None else GpuUse(**gpu.model_dump()),
        None if message.traffic is None else Traffic(**message.traffic.model_dump()),
        None if message.together is None else SeenTogether(message.together.marks, message.together.gpus),
    )
