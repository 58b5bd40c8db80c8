"""All measurements of one machine, one after the other."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from synergy_cli.gpu.cpus import HarnessError, measured_cpus, pipeline_command
from synergy_cli.gpu.groups import Options, measured_groups, only, training_command
from synergy_cli.gpu.machine import Gpu, used_memory
from synergy_cli.gpu.preemption import checkpoint_times, suspension

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is measured, and what it runs with."""

    options: Options
    python: str
    on_cpu: bool = False
    stand_in_s: float | None = None
    """Seconds that take the place of a GPU's step in the curve over CPUs."""

    @property
    def device(self) -> str:
        """As PyTorch names it."""
        return "cpu" if self.on_cpu else "cuda"


def measured(gpu: Gpu, wanted: Wanted, environ: Mapping[str, str], report: Report) -> dict[str, Any]:
    """All figures as JSON. What could not be measured is left out, with why. Raises TrainingError if nothing could."""
    training = partial(training_command, python=wanted.python, device=wanted.device)
    figures = measured_groups(gpu.uuid, wanted.options, environ, report, training)
    here = {**environ, **only(gpu.uuid)}
    settings = wanted.options.settings
    models = sorted({one.model for one in settings})
    smallest = {one.model: one for one in sorted(settings, reverse=True)}
    checkpointing = partial(_checkpointing, python=wanted.python, device=wanted.device)
    memory = partial(used_memory, gpu.uuid, environ)
    return {
        "device": wanted.device,
        **figures,
        "cpus": _cpus(wanted, here, report),
        "checkpoints": checkpoint_times(models, here, report, checkpointing),
        "suspension": suspension([smallest[model] for model in models], here, report, training, memory),
    }


def _checkpointing(what: str, model: str, path: Path, *, python: str, device: str) -> Sequence[str]:
    return [python, "-m", "synergy_cli.gpu.checkpointing", what, model, device, str(path)]


def _cpus(wanted: Wanted, environ: Mapping[str, str], report: Report) -> dict[str, Any]:
    command = partial(pipeline_command, stand_in_s=wanted.stand_in_s, python=wanted.python)
    try:
        return measured_cpus(len(os.sched_getaffinity(0)), environ, report, command, ("--steps", "100"))
    except (HarnessError, ValueError) as error:
        report(f"CPUs: {error}")
        return {"skipped": str(error)}
