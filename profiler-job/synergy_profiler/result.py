"""What the harness says at the end, in a termination message."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from synergy_job.loop.termination import LONGEST_MESSAGE

if TYPE_CHECKING:
    from typing import Literal

    from synergy_profiler.gpu_usage import GpuUsage
    from synergy_profiler.measurement import Measurement
    from synergy_profiler.together import Together
    from synergy_profiler.traffic.measure import Traffic

    Reason = Literal["Crashed", "NoSteps", "Timeout", "TooNoisy", "BadCommand"]


@dataclass(frozen=True)
class Measured:
    """The command trained at this rate. `cpu_used_millis` is None where the harness has no cgroup of its own."""

    measurement: Measurement
    warmup_steps: int
    cpu_used_millis: int | None
    max_rss_bytes: int
    cached: bool
    """Whether the command reads its data through the library's cache; that is not in `max_rss_bytes`."""
    tensors: tuple[int, int] | None = None
    """Bytes of the model's largest tensor and of all of them, if the command passed its model to the library."""
    epoch_steps: int | None = None
    """Steps of one pass over its data, if the library in it counts them."""
    gpu: GpuUsage | None = None
    """Its GPU usage, if nvidia-smi or counters measure it."""
    traffic: Traffic | None = None
    """What each of its workers sends in a step, if there are several."""
    together: Together | None = None
    """When its steps ended, if it ran beside another command."""

    def to_json(self) -> str:
        """The termination message."""
        measurement = self.measurement
        names = ("largest_tensor_bytes", "model_bytes")
        gpu = self.gpu
        return json.dumps(
            {
                "outcome": "measured",
                "steps_per_second": round(measurement.steps_per_second, 6),
                "relative_error": round(measurement.relative_error, 6),
                "steps": measurement.steps,
                "warmup_steps": self.warmup_steps,
                "seconds": round(measurement.seconds, 3),
                "cpu_used_millis": self.cpu_used_millis,
                "max_rss_bytes": self.max_rss_bytes,
                "cached": self.cached,
                **(dict(zip(names, self.tensors)) if self.tensors is not None else {}),  # noqa: B905 - Python 3.8
                **({} if self.traffic is None else {"traffic": _sent(self.traffic)}),
                **({} if self.epoch_steps is None else {"epoch_steps": self.epoch_steps}),
                **({} if gpu is None else {"gpu": _rounded(gpu)}),
                **({} if self.together is None else {"together": asdict(self.together)}),
            }
        )


def _rounded(gpu: GpuUsage) -> dict[str, float | str]:
    further = {
        "occupancy": gpu.occupancy,
        "utilization": gpu.utilization,
        "memory_utilization": gpu.memory_utilization,
    }
    return {
        "compute": round(gpu.compute, 4),
        "bandwidth": round(gpu.bandwidth, 4),
        "memory_bytes": gpu.memory_bytes,
        "source": gpu.source,
        **{name: round(value, 4) for name, value in further.items() if value is not None},
        **({"problem": gpu.problem} if gpu.problem else {}),
    }


def _sent(traffic: Traffic) -> dict[str, float | str]:
    told = asdict(traffic)
    told["model_bytes"] = traffic.model_bytes
    for name in ("sending_seconds", "overlap"):
        if told[name] is not None:
            told[name] = round(told[name], 6)
    return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Failed:
    """Nothing was measured; `message` says why and what to change."""

    reason: Reason
    message: str
    exit_code: int | None = None
    log_tail: str = ""

    def to_json(self) -> str:
        """The termination message; of the log's tail as much as there is room for."""
        tail = self.log_tail
        while len(text := self._json(tail)) > LONGEST_MESSAGE:
            tail = tail[len(tail) // 8 + 1 :]
        return text

    def _json(self, tail: str) -> str:
        fields: dict[str, Any] = {
            "outcome": "failed",
            "reason": self.reason,
            "message": self.message[:500],
            "exit_code": self.exit_code,
            "log_tail": tail,
        }
        return json.dumps(fields)  # in ASCII: as many bytes as characters
