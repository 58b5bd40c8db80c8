"""The co-location thesis, chapter 6: all jobs at once on two machines with one V100 each, against FIFO.

The thesis does not publish its profiles. The models' usages are those of like ones in public measurements; data workers
are CPUs that a job may use at the most. What sharing really costs in the best case is the law fitted to public pairs;
in the worst case it is what the thesis measured, a delta of 1.02.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_core.model.config import ColocationMode
from synergy_core.model.measurement import Observation
from synergy_core.model.snapshot import Profile
from synergy_core.model.usage import Usage
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import Truth
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.workloads.workload import Task, Workload

ITERATIONS = 1000
CORES = 64
_MODES: tuple[ColocationMode, ...] = ("none", "thesis", "auto")


@dataclass(frozen=True, slots=True)
class _Model:
    """A model of the thesis: seconds of an iteration with the GPU alone, CPUs that keep up with it, GPU use."""

    step_s: float
    workers: float
    usage: Usage


def _model(name: str, step_s: float, workers: float, compute: float, bandwidth: float) -> _Model:
    return _Model(step_s, workers, Usage(compute=compute, bandwidth=bandwidth, memory_bytes=4 * GIB, model=name))


BEST = {
    "vgg19": _model("vgg19", 0.020, 6.0, 0.51, 0.30),
    "vgg11": _model("vgg11", 0.012, 6.0, 0.40, 0.25),
    "resnet18": _model("resnet18", 0.018, 6.0, 0.60, 0.35),
}
WORST = {
    "se_resnet18": _model("se_resnet18", 0.095, 4.0, 1.0, 0.8),
    "resnet18": _model("resnet18", 0.085, 4.0, 1.0, 0.8),
}


@dataclass(frozen=True, slots=True)
class Fixed:
    """Every job that shares keeps the same."""

    fraction: float

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """Of each job."""
        return (self.fraction if len(usages) > 1 else 1.0,) * len(usages)

    def corrected(self, _observations: Sequence[Observation]) -> "Fixed":
        """Itself."""
        return self


def best(inputs: Inputs) -> Findings:
    """Figures 6.1 to 6.4: two each of three models with small batches."""
    paper = {10: ("0.63", "1.61"), 2: ("0.50", "1.25")}
    title = "Co-location thesis, best case (figures 6.1 to 6.4)"
    return _findings(inputs, title, BEST, replicas=3, truth=Truth(deviation=0.0), paper=paper)


def worst(inputs: Inputs) -> Findings:
    """Figures 6.5 to 6.8: two each of two models with batches of 256, which together have a delta of 1.02."""
    paper = {10: ("below 1", ""), 2: ("well below 1", "")}
    title = "Co-location thesis, worst case (figures 6.5 to 6.8)"
    return _findings(inputs, title, WORST, replicas=2, truth=Truth(Fixed(0.51), deviation=0.0), paper=paper)


def _findings(
    inputs: Inputs,
    title: str,
    models: Mapping[str, _Model],
    *,
    replicas: int,
    truth: Truth,
    paper: Mapping[int, tuple[str, str]],
) -> Findings:
    cases = [
        Case(f"{workers} {mode}", _workload(models, workers, replicas), _options(mode, truth))
        for workers in paper
        for mode in _MODES
    ]
    found = {case.label: summary for case, summary in zip(cases, inputs.run(cases), strict=True)}
    rows: list[Sequence[str]] = []
    figures: dict[str, float] = {}
    for workers, (paper_makespan, paper_jct) in paper.items():
        fifo = found[f"{workers} none"]
        for mode in _MODES[1:]:
            one = found[f"{workers} {mode}"]
            makespan = one.metrics.makespan_s / fifo.metrics.makespan_s
            running = _running_s(one) / _running_s(fifo)
            queue = one.metrics.avg_queue_s / max(1e-9, fifo.metrics.avg_queue_s)
            of_paper = (paper_makespan, paper_jct) if mode == "thesis" else ("", "")
            rows.append(
                (f"{workers} data workers, {mode}", f"{makespan:.2f}", of_paper[0], f"{running:.2f}", of_paper[1],
                 f"{queue:.2f}")
            )  # fmt: skip
            figures |= {
                f"{mode}_makespan_{workers}": makespan,
                f"{mode}_jct_{workers}": running,
                f"{mode}_queue_{workers}": queue,
            }
    header = ("against FIFO", "makespan", "the thesis", "JCT (from start)", "the thesis", "queueing")
    differs = [
        "Usages and iteration times are of our own making, after like models in public measurements.",
        "A job with two data workers has two CPUs: it waits for its data, shared or not.",
        f"{ITERATIONS} iterations; rounds of 10 s.",
    ]
    return Findings(title, header, rows, differs, (), figures)


def _running_s(summary: Summary) -> float:
    """JCT as in the thesis: from the start of a job to its end."""
    return summary.metrics.avg_jct_s - summary.metrics.avg_queue_s


def _options(mode: ColocationMode, truth: Truth) -> Options:
    return Options.of(policy="fifo", colocation=mode, truth=truth, round_s=10.0, record=True)


def _workload(models: Mapping[str, _Model], workers: int, replicas: int) -> Workload:
    pool = SimulatedPool(
        name="v100",
        gpu_type="V100",
        nodes=2,
        gpus_per_node=1,
        cpus_per_node=CORES,
        memory_gib_per_node=256.0,
        replicas=replicas,
        gpu_memory_gib=32.0,
    )
    tasks = [_task(name, model, workers) for name, model in models.items()]
    twice = [replace(task, name=f"{task.name}-{index}") for index in (1, 2) for task in tasks]
    return Workload(tuple(twice), Cluster((pool,)))


def _task(name: str, model: _Model, workers: int) -> Task:
    cpus = round(model.workers * 1000)
    profile = Profile(cpu_millis=(cpus,), memory_bytes=(GIB,), steps_per_s=((1.0 / model.step_s,),))
    speed = min(1.0, workers / model.workers) / model.step_s
    return Task(
        name=name,
        arrival_s=0.0,
        gpus=1,
        model=name,
        steps=float(ITERATIONS),
        profiles={"V100": profile},
        share_steps_per_s=speed,
        alone_s=ITERATIONS / speed,
        usage={"V100": model.usage},
        cpu_millis_max=workers * 1000,
    )
