"""What reproductions have in common: inputs, simulations to be made, findings."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from synergy_simulator.engine.options import Options
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import TraceJob, read_trace
from synergy_simulator.report.chart import Chart
from synergy_simulator.report.intervals import Interval, intervals_of, over_seeds
from synergy_simulator.report.summary import Summary
from synergy_simulator.workloads.generator import Split, generate
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload

HOUR = 3600.0
LONG_S = 4 * HOUR
"""From here on a job is long (section 5.3.1)."""

RunAll = Callable[[Sequence[Case]], list[Summary]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What reproductions read: the authors' tables where they are at hand, else what the project has itself."""

    profiles: ProfileTable
    profiles_note: str
    philly: Path | None
    steady: Path | None
    """The authors' trace of single-GPU jobs in steady state, at 9 jobs/h."""
    gavel: Path | None
    """Folder of the Gavel authors' tables and traces."""
    quick: bool
    seed: int
    run: RunAll

    @staticmethod
    def of(data: Path | None, *, quick: bool, seed: int, run: RunAll) -> "Inputs":
        """`data`, where given, has all or some of the tables that are read here."""

        def at_hand(name: str) -> Path | None:
            return data / name if data is not None and (data / name).is_file() else None

        table = at_hand("synergy/throughputs.json")
        if table is not None:
            profiles, note = read_profiles(table), "Matrices: the Synergy authors' table (one-GPU matrices, scaled)."
        else:
            profiles, note = built_in_profiles(), "Matrices: the built-in models, not the paper's measured ones."
        steady = at_hand("synergy/trace_ss9.csv") if table is not None else None
        speeds = at_hand("gavel/simulation_throughputs.json")
        gavel = None if speeds is None or at_hand("gavel/physical_cluster_throughputs.json") is None else speeds.parent
        return Inputs(profiles, note, at_hand("philly/philly.csv"), steady, gavel, quick, seed, run)

    def workload(self, trace: Sequence[TraceJob], cluster: Cluster) -> Workload:
        """A trace on a cluster with these profiles."""
        return build_workload(trace, self.profiles, cluster)

    def derived(
        self,
        count: int,
        split: Split,
        *,
        load: float | None,
        gpu_mix: Mapping[int, float],
        models: Collection[str] | None = None,
    ) -> list[TraceJob]:
        """A trace derived from production (section 5.1), of `models` or of those with profiles here."""
        names = self.profiles.models if models is None else models
        return generate(count, seed=self.seed, split=split, models=names, jobs_per_hour=load, gpu_mix=gpu_mix)


@dataclass(frozen=True, slots=True)
class Findings:
    """What came of a reproduction."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    differs: Sequence[str]
    """What is not as in the paper."""
    charts: Sequence[Chart] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """Our figures by name, for programs."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """Means and confidence intervals of the figures; empty for one seed."""


def over_draws(draws: Sequence[Findings], seeds: Sequence[int]) -> Findings:
    """Findings of several seeds as one: the first one's table, the means of figures and charts with their intervals."""
    first = draws[0]
    if len(draws) == 1:
        return first
    found = intervals_of([one.figures for one in draws])
    note = (
        f"The table is of seed {seeds[0]}. Charts and the figures over seeds are means of {len(seeds)} seeds "
        f"({seeds[0]} to {seeds[-1]}); behind ± and in bands is the 95 % confidence interval of the mean."
    )
    return replace(
        first,
        differs=[*first.differs, note],
        charts=over_seeds([one.charts for one in draws]),
        figures={**first.figures, **{name: one.mean for name, one in found.items()}},
        intervals=found,
    )


def interval_rows(findings: Findings) -> list[tuple[str, str, str]]:
    """Name, mean and half of the interval's width of each figure."""
    return [(name, f"{one.mean:.4g}", f"± {one.half:.2g}") for name, one in findings.intervals.items()]


def philly_trace(inputs: Inputs, count: int, first: int) -> list[TraceJob] | None:
    """A window of the real Philly trace, its first job at 0; None where the table is not at hand."""
    if inputs.philly is None:
        return None
    jobs = read_trace(inputs.philly)[first : first + count]
    start = jobs[0].arrival_s
    return [replace(job, arrival_s=job.arrival_s - start) for job in jobs]


def scaled(jobs: Sequence[TraceJob], *, mean_s: float, most_s: float) -> list[TraceJob]:
    """The jobs with durations that have this mean before they are cut at `most_s`."""
    factor = mean_s / mean([job.duration_s or 0.0 for job in jobs])
    return [replace(job, duration_s=min(most_s, (job.duration_s or 0.0) * factor)) for job in jobs]


def steady(measure: tuple[int, int], *, policy: str, mechanism: str) -> Options:
    """Options of a run whose jobs are measured in steady state."""
    return Options.of(policy=policy, mechanism=mechanism, measure=measure, until_measured_done=True)


def avg_h(summary: Summary) -> float:
    """Average JCT in hours."""
    return summary.metrics.avg_jct_s / HOUR


def mean(values: Sequence[float]) -> float:
    """0 where there is none."""
    return sum(values) / len(values) if values else 0.0
