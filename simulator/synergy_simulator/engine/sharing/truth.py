"""GPU sharing in the simulation: what models do to a GPU, and what sharing really costs their jobs."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.model.measurement import LEAST, Predictor
from synergy_core.model.snapshot import Job
from synergy_core.model.usage import MIB, Usage
from synergy_core.throughput.threads import ceiling
from synergy_simulator.inputs.table import Row, Table

Usages = Mapping[str, Usage]
"""By model, on every GPU type."""

_COLUMNS = ("model", "gpu_util", "gmem_util", "gmem")


def _usage(model: str, compute: float, bandwidth: float, gib: float) -> tuple[str, Usage]:
    return model, Usage(compute=compute, bandwidth=bandwidth, memory_bytes=round(gib * 1024) * MIB, model=model)


BUILT_IN: Usages = dict(
    (
        _usage("alexnet", 0.35, 0.20, 3.0),
        _usage("mobilenet", 0.45, 0.30, 4.0),
        _usage("res18", 0.55, 0.35, 4.0),
        _usage("res50", 0.95, 0.75, 9.0),
        _usage("shufflenet", 0.40, 0.25, 3.5),
        _usage("gnmt", 0.75, 0.50, 7.0),
        _usage("lstm", 0.30, 0.25, 3.0),
        _usage("transformer", 0.85, 0.60, 8.0),
        _usage("deepspeech", 0.60, 0.40, 5.0),
        _usage("m5", 0.25, 0.15, 2.5),
    )
)
"""Of the built-in models, of our own making: small batches leave much of a GPU, large models nearly nothing."""


def read_usages(path: Path) -> Usages:
    """A CSV table `model,gpu_util,gmem_util,gmem` (percent, percent, MiB); raises InputError naming line and column."""
    table = Table(path)
    table.require(_COLUMNS, _COLUMNS)
    found: dict[str, Usage] = {}
    for row in table.rows():
        model = row.text("model")
        if model in found:
            raise row.bad("model", f"{model} occurs twice; give each model once")
        found[model] = Usage(
            compute=_percent(row, "gpu_util"),
            bandwidth=_percent(row, "gmem_util"),
            memory_bytes=int(row.number("gmem", least=0.0) * MIB),
            model=model,
        )
    return found


def _percent(row: Row, column: str) -> float:
    value = row.number(column, least=0.0)
    if value > 100.0:
        raise row.bad(column, f"must be at most 100 percent, is {value:g}")
    return value / 100.0


@dataclass(frozen=True, slots=True)
class Truth:
    """What jobs really keep of a GPU's speed: a law that the planner's predictor need not know.

    Beside `law` each model has, with each set of partners' models, a deviation of its own that is always the same.
    """

    law: Predictor = EFFECTS
    deviation: float = 0.06
    """Its standard deviation; as on the public measurements."""
    measured: Mapping[str, Predictor] = field(default_factory=dict)
    """By GPU type, what holds in place of the law, without deviations."""

    def fractions(self, members: Sequence[Job], gpu_type: str, thread_percent: int = 100) -> tuple[float, ...]:
        """Of each member, at most all, and at most what so much of the GPU's threads is enough for."""
        most = [ceiling(job.usage[gpu_type], thread_percent) for job in members]
        return tuple(map(min, self._unlimited(members, gpu_type), most))

    def _unlimited(self, members: Sequence[Job], gpu_type: str) -> tuple[float, ...]:
        usages = [job.usage[gpu_type] for job in members]
        if gpu_type in self.measured:
            return tuple(max(LEAST, one) for one in self.measured[gpu_type].fractions(usages))
        names = [usage.model for usage in usages]
        found = []
        for index, fraction in enumerate(self.law.fractions(usages)):
            others = ",".join(sorted(names[:index] + names[index + 1 :]))
            chance = random.Random(f"{gpu_type} {names[index]} with {others}").gauss(0.0, self.deviation)  # noqa: S311
            found.append(min(1.0, max(LEAST, fraction + (chance if len(members) > 1 else 0.0))))
        return tuple(found)
