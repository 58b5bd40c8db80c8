"""Average JCT over load, as in figures 7, 8, 9, 11 and 12."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.inputs.traces import TraceJob, read_trace
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Inputs, avg_h, steady
from synergy_simulator.workloads.generator import SINGLE, Split

W1 = Split(20, 70, 10)
"""The split of figures 6 to 9, a mix of sensitive and insensitive jobs."""


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


AUTHORS_LOAD = 9.0
"""Jobs per hour of the authors' own trace."""

FULL = Scale(16, 6500, (4000, 5000))
LONG_QUEUES = Scale(16, 3000, (1500, 2500))
"""For mechanisms under which queues grow without end: each plan looks at all of them."""
QUICK = Scale(2, 500, (300, 450))


def scale_of(inputs: Inputs) -> Scale:
    """The paper's size, or an eighth of it."""
    return QUICK if inputs.quick else FULL


def trace_note(inputs: Inputs, *, single: bool) -> str:
    """Where the traces come from."""
    if single and inputs.steady is not None and not inputs.quick:
        return "Trace: at 9 jobs/h the Synergy authors' own, at other loads drawn as section 5.1 says."
    return "Trace: drawn anew as section 5.1 says; the paper's own traces are not published with it."


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
            workload = inputs.workload(self.trace(inputs, load), cluster)
            for mechanism in self.mechanisms:
                options = steady(scale.measure, policy=self.policy, mechanism=mechanism)
                made.append(Case(f"{prefix}{mechanism}, {load:g} jobs/h", workload, options))
        return made

    def trace(self, inputs: Inputs, load: float) -> list[TraceJob]:
        """The authors' own trace where this is its load, else one that is drawn."""
        theirs = (FULL, SINGLE, W1, AUTHORS_LOAD)
        if inputs.steady is not None and (self.scale, self.gpu_mix, self.split, load) == theirs:
            return [replace(job, steps=None) for job in read_trace(inputs.steady)]
        return inputs.derived(self.scale.jobs, self.split, load=load * self.scale.part, gpu_mix=self.gpu_mix)

    def wanted(self, inputs: Inputs, load: float) -> float:
        """GPU-hours that jobs up to the last measured one want at the proportional share, per GPU-hour there is."""
        jobs = self.trace(inputs, load)[: self.scale.measure[1]]
        hours = sum(job.gpus * (job.duration_s or 0.0) for job in jobs)
        return hours / (jobs[-1].arrival_s - jobs[0].arrival_s) / (8 * self.scale.servers)

    def grouped(self, summaries: Sequence[Summary]) -> dict[float, dict[str, Summary]]:
        """The answers by load and mechanism."""
        width = len(self.mechanisms)
        return {
            load: dict(zip(self.mechanisms, summaries[index * width : (index + 1) * width], strict=True))
            for index, load in enumerate(self.loads)
        }


def jct_chart(title: str, found: Mapping[float, Mapping[str, Summary]], mechanisms: Sequence[str]) -> Chart:
    """Average JCT over load, a line per mechanism."""
    lines = [Line(name, [(load, avg_h(found[load][name])) for load in found]) for name in mechanisms]
    return Chart(lines, title=title, x="jobs per hour", y="average JCT, hours")


def cdf_chart(title: str, jcts: Mapping[str, Sequence[float]]) -> Chart:
    """Distribution of JCTs in hours, a line per mechanism."""
    lines = [
        Line(name, [(jct / 3600, (rank + 1) / len(values)) for rank, jct in enumerate(values)])
        for name, values in jcts.items()
    ]
    return Chart(lines, title=title, x="hours, logarithmic", y="part of jobs", log_x=True, top=1.0)
