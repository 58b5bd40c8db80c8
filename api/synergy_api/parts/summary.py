"""What `kubectl get` shows of a TrainingJob, as text (`status.summary`): printer columns cannot compute.

Each text is made from fields that its writer owns, and written together with them. No component reads it.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from synergy_api.base import ApiModel
from synergy_api.parts.allocation import Allocation

_GIB: Final = 1 << 30
_NAMED: Final = 3
"""Partners whose names are shown; the others are counted."""


class Summary(ApiModel):
    """The job in short texts, for people. Written by the extender, read by no component."""

    progress: Annotated[
        str | None, Field(max_length=64, description="Steps done of all steps, such as 409/1100, as last reported.")
    ] = None
    start: Annotated[
        str | None,
        Field(max_length=64, description="The same while the job waits and has never reported, such as 0/1100."),
    ] = None
    speed: Annotated[
        str | None, Field(max_length=64, description="Measured speed, such as 3.2 steps/s, as last reported.")
    ] = None
    gpus: Annotated[
        str | None,
        Field(
            max_length=128,
            description="GPUs that the job holds, such as 4 V100, or 1/2 T4 where it is one of 2 jobs on the GPU. "
            "While it waits, the number that it waits for, without a type.",
        ),
    ] = None
    cpu: Annotated[
        str | None,
        Field(
            max_length=64,
            description="CPUs that the job holds / the GPU-proportional share of its nodes, such as 12/6.",
        ),
    ] = None
    memory: Annotated[
        str | None, Field(max_length=64, description="Memory that it holds / the same share of it, such as 48/24Gi.")
    ] = None
    partners: Annotated[
        str | None,
        Field(
            max_length=1024,
            description="Jobs that share its GPU: those that were seen there, before that those that the plan wants "
            "there. Without the namespace where it is the job's own.",
        ),
    ] = None


def steps_text(steps: int, total: int | None) -> str:
    """Steps done of all steps, where their number is known."""
    return str(steps) if total is None else f"{steps}/{total}"


def speed_text(steps_per_second: float) -> str | None:
    """A measured speed with its unit; None where none was measured."""
    return f"{_number(steps_per_second)} steps/s" if steps_per_second > 0 else None


def gpus_text(allocation: Allocation) -> str | None:
    """The GPUs that a job holds; None where it holds none."""
    gpus = sum(share.gpus for share in allocation.workers)
    if not gpus:
        return None
    jobs = 1 + len(_partners(allocation))
    count = f"{gpus}/{jobs}" if jobs > 1 else str(gpus)
    return f"{count} {allocation.gpu_type}".rstrip()


def cpu_text(given: int, proportional: int | None) -> str:
    """CPUs given beside the proportional share where that is known, both in milli-CPU."""
    return _beside(given / 1000, None if proportional is None else proportional / 1000)


def memory_text(given: int, proportional: int | None) -> str:
    """Memory given beside the proportional share where that is known, both in bytes."""
    return _beside(given / _GIB, None if proportional is None else proportional / _GIB) + "Gi"


def _beside(given: float, proportional: float | None) -> str:
    return _number(given) if proportional is None else f"{_number(given)}/{_number(proportional)}"


def partners_text(allocation: Allocation, namespace: str) -> str | None:
    """The jobs that share the GPU; None where there are none."""
    names = [name.removeprefix(f"{namespace}/") for name in _partners(allocation)]
    more = [f"+{len(names) - _NAMED}"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more]) or None


def _partners(allocation: Allocation) -> Sequence[str]:
    shared = allocation.shared_gpu
    if shared is None:
        return ()
    return shared.asked if shared.seen is None else shared.seen


def _number(value: float) -> str:
    """Three significant digits, all digits before the point, never an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    text = f"{float(f'{value:.3g}'):.9f}".rstrip("0").rstrip(".")
    return text if text != "0" or value == 0 else "<0.000000001"
