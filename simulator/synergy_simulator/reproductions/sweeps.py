"""Average JCT over load, as in figures 7, 8, 9, 11 and 12."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synergy_simulator.generator import Split
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.report.chart import Line, line_chart
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Inputs, avg_h, steady


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a sweep is."""

    servers: int
    jobs: int
    measure: tuple[int, int]

    @property
    def part(self) -> float:
        """Of the paper's 16 servers, and of its load."""
        return self.servers / 16


FULL = Scale(16, 6500, (4000, 5000))
QUICK = Scale(4, 1200, (800, 1000))


def scale_of(inputs: Inputs) -> Scale:
    """The paper's size, or a quarter of it."""
    return QUICK if inputs.quick else FULL


def scale_notes(scale: Scale) -> list[str]:
    """What differs by the scale."""
    first, last = scale.measure
    notes = [f"Jobs {first} to {last} are measured; the paper says 1000 in steady state."]
    if scale.part < 1:
        size = f"{scale.servers} servers instead of 16 and {scale.part:g} of the load"
        notes.append(f"Quick: {size}; queues are shorter than in full.")
    return notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One policy under several loads and mechanisms."""

    policy: str
    mechanisms: Sequence[str]
    loads: Sequence[float]
    """Jobs per hour on 16 servers."""
    split: Split
    gpu_mix: Mapping[int, float]
    cpus_per_gpu: float = 3.0
    scale: Scale

    def cases(self, inputs: Inputs, prefix: str = "") -> list[Case]:
        """Its simulations, by load, then by mechanism."""
        made = []
        scale = self.scale
        cluster = homogeneous(scale.servers, cpus_per_gpu=self.cpus_per_gpu)
        for load in self.loads:
            trace = inputs.derived(scale.jobs, self.split, load=load * scale.part, gpu_mix=self.gpu_mix)
            workload = inputs.workload(trace, cluster)
            for mechanism in self.mechanisms:
                options = steady(scale.measure, policy=self.policy, mechanism=mechanism)
                made.append(Case(f"{prefix}{mechanism}, {load:g} jobs/h", workload, options))
        return made

    def grouped(self, summaries: Sequence[Summary]) -> dict[float, dict[str, Summary]]:
        """The answers by load and mechanism."""
        width = len(self.mechanisms)
        return {
            load: dict(zip(self.mechanisms, summaries[index * width : (index + 1) * width], strict=True))
            for index, load in enumerate(self.loads)
        }


def jct_chart(title: str, found: Mapping[float, Mapping[str, Summary]], mechanisms: Sequence[str]) -> str:
    """Average JCT over load, a line per mechanism."""
    lines = [Line(name, [(load, avg_h(found[load][name])) for load in found]) for name in mechanisms]
    return line_chart(lines, title=title, x="jobs per hour", y="average JCT, hours")


def cdf_chart(title: str, jcts: Mapping[str, Sequence[float]]) -> str:
    """Distribution of JCTs in hours, a line per mechanism."""
    lines = [
        Line(name, [(jct / 3600, (rank + 1) / len(values)) for rank, jct in enumerate(values)])
        for name, values in jcts.items()
    ]
    return line_chart(lines, title=title, x="hours, logarithmic", y="part of jobs", log_x=True, top=1.0)
