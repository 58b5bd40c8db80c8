"""Average JCT over load on V100, P100 and K80 GPUs, a line per scheduler (Gavel, figures 9, 10 and 11, section 7.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synergy_simulator.grid import Case
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h, mean
from synergy_simulator.reproductions.gavel.common import (
    GAVEL_LAS,
    LAS,
    ROUND_S,
    TRACE_NOTE,
    GavelInputs,
    Scheduler,
    cluster,
    options,
)
from synergy_simulator.reproductions.sweeps import cdf_chart
from synergy_simulator.workloads.gavel_mix import MULTIPLE, SINGLE


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a sweep is."""

    gpus: int
    """Of each type."""
    measure: tuple[int, int]
    """Jobs by arrival."""
    jobs: int
    """In the trace. In full more than arrive until the measured jobs are done: these are in steady state."""
    round_s: float = ROUND_S

    @property
    def part(self) -> float:
        """Of the paper's 36 GPUs of each type, and of its load."""
        return self.gpus / 36


FULL = Scale(36, (4000, 5000), 30_000)
QUICK = Scale(8, (20, 45), 120, 20 * ROUND_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSweep:
    """Schedulers over loads on traces of one kind."""

    schedulers: Sequence[Scheduler]
    loads: Sequence[float]
    """Jobs per hour on the paper's cluster; the last is the one that the paper calls high."""
    multiple: bool
    """Whether jobs of several GPUs are among them."""
    important: float = 0.0
    """Part of the jobs that have a weight of 5."""

    def found(self, inputs: Inputs) -> dict[float, dict[str, Summary]]:
        """The answers by load and scheduler."""
        gavel, scale = GavelInputs.of(inputs), scale_of(inputs)
        loads = self.loads[-1:] if inputs.quick else self.loads
        cases = []
        for load in loads:
            workload = gavel.workload(self.trace(gavel, scale, load), cluster(scale.gpus))
            cases += [
                Case(
                    f"{one.label}, {load:g} jobs/h",
                    workload,
                    options(one, measure=scale.measure, round_s=scale.round_s),
                )
                for one in self.schedulers
            ]
        answers = iter(inputs.run(cases))
        return {load: {one.label: next(answers) for one in self.schedulers} for load in loads}

    def trace(self, gavel: GavelInputs, scale: Scale, load: float) -> list[TraceJob]:
        """Drawn jobs at this load."""
        mix: Mapping[int, float] = MULTIPLE if self.multiple else SINGLE
        more: dict[str, Any] = {"gpu_mix": mix, "important": self.important}
        return gavel.drawn(scale.jobs, jobs_per_hour=load * scale.part, **more)


def scale_of(inputs: Inputs) -> Scale:
    """The paper's size, or less than a quarter of it."""
    return QUICK if inputs.quick else FULL


def notes(inputs: Inputs) -> list[str]:
    """What differs from the paper in all of these figures."""
    scale = scale_of(inputs)
    first, last = scale.measure
    said = [
        GavelInputs.of(inputs).speeds_note,
        TRACE_NOTE,
        f"Seed {inputs.seed}; the paper has three. Jobs {first} to {last} are measured"
        + (f" of {scale.jobs}." if inputs.quick else "; others keep coming until they are done."),
    ]
    if inputs.quick:
        size = f"{scale.gpus} GPUs of each type instead of 36, {scale.part:.2f} of the load"
        said.append(f"Quick: {size}, one load, rounds of {scale.round_s / 60:g} minutes instead of 6.")
    return said


def fig9(inputs: Inputs) -> Findings:
    """LAS, jobs of one GPU, and AlloX beside it."""
    allox = Scheduler("AlloX", "allox")
    sweep = LoadSweep(schedulers=(LAS, GAVEL_LAS, allox), loads=(2.8, 5.6), multiple=False)
    return _figure(inputs, "Gavel, figure 9: LAS, jobs of one GPU", sweep, {5.6: "3.5x"})


def fig10(inputs: Inputs) -> Findings:
    """LAS, jobs of up to eight GPUs."""
    sweep = LoadSweep(schedulers=(LAS, GAVEL_LAS), loads=(1.4, 2.6), multiple=True)
    return _figure(inputs, "Gavel, figure 10: LAS, jobs of up to 8 GPUs", sweep, {2.6: "2.2x"})


def _figure(inputs: Inputs, title: str, sweep: LoadSweep, paper: Mapping[float, str]) -> Findings:
    found = sweep.found(inputs)
    usual, better = sweep.schedulers[0].label, sweep.schedulers[1].label
    rows = [
        (
            f"{load:g}",
            *(f"{avg_h(by[one.label]):.1f}" for one in sweep.schedulers),
            f"{gain(by, usual, better):.2f}x",
            paper.get(load, ""),
            " / ".join(f"{by[one.label].metrics.gpu_utilization:.0%}" for one in sweep.schedulers),
        )
        for load, by in found.items()
    ]
    header = ("jobs/h", *(f"{one.label}, h" for one in sweep.schedulers), "gain", "the paper", "GPUs in use")
    return Findings(title, header, rows, notes(inputs), charts(title, sweep, found), figures(sweep, found))


def gain(by: Mapping[str, Summary], usual: str, better: str) -> float:
    """How many times shorter the average JCT is."""
    return avg_h(by[usual]) / avg_h(by[better])


def figures(sweep: LoadSweep, found: Mapping[float, Mapping[str, Summary]]) -> dict[str, float]:
    """Gains over the first scheduler at each load."""
    usual = sweep.schedulers[0].label
    return {
        f"{one.policy}_gain_at_{load:g}": gain(by, usual, one.label)
        for load, by in found.items()
        for one in sweep.schedulers[1:]
    }


def charts(title: str, sweep: LoadSweep, found: Mapping[float, Mapping[str, Summary]]) -> list[Chart]:
    """Average JCT over load, and the distribution of JCTs at the highest."""
    highest = max(found)
    labels = [one.label for one in sweep.schedulers]
    lines = [Line(label, [(load, avg_h(by[label])) for load, by in found.items()]) for label in labels]
    return [
        Chart(lines, title=title, x="jobs per hour", y="average JCT, hours"),
        cdf_chart(
            f"Job completion times at {highest:g} jobs/h", {label: found[highest][label].jcts for label in labels}
        ),
    ]


def fig11(inputs: Inputs) -> Findings:
    """Finish-time fairness, jobs of up to eight GPUs."""
    usual = Scheduler("Minimize FTF", "finish-time-fairness", aware=False)
    better = Scheduler("Gavel", "finish-time-fairness")
    sweep = LoadSweep(schedulers=(usual, better), loads=(1.4, 2.6), multiple=True)
    found = sweep.found(inputs)
    rows, made = [], figures(sweep, found)
    for load, by in found.items():
        fairness = [mean(of) for of in _fairness(by[usual.label], by[better.label])]
        made[f"ftf_gain_at_{load:g}"] = fairness[0] / fairness[1]
        made[f"own_ftf_gain_at_{load:g}"] = by[usual.label].metrics.avg_ftf / by[better.label].metrics.avg_ftf
        highest = load == max(sweep.loads)
        rows.append(
            (
                f"{load:g}",
                *(f"{avg_h(by[one.label]):.1f}" for one in sweep.schedulers),
                f"{gain(by, usual.label, better.label):.2f}x",
                "3x" if highest else "",
                *(f"{value:.2f}" for value in fairness),
                f"{made[f'ftf_gain_at_{load:g}']:.2f}x",
                "2.8x" if highest else "",
            )
        )
    title = "Gavel, figure 11: finish-time fairness, jobs of up to 8 GPUs"
    at_most = found[max(found)]
    both = _fairness(at_most[usual.label], at_most[better.label])
    drawn = [
        Line(one.label, [(value, (rank + 1) / len(values)) for rank, value in enumerate(sorted(values))])
        for one, values in zip(sweep.schedulers, both, strict=True)
    ]
    more = Chart(drawn, title="FTF at the highest load", x="FTF", y="part of jobs", log_x=True, top=1.0)
    header = ("jobs/h", f"{usual.label}, h", "Gavel, h", "gain", "the paper", "FTF", "Gavel's FTF", "gain", "the paper")
    said = [
        *notes(inputs),
        "FTF, of both, is beside an n-th of the cluster, n being the GPUs that Gavel's run wanted for each that there "
        "is while a job was there, in the mean; with the n of each its own run the gain is "
        + ", ".join(f"{made[f'own_ftf_gain_at_{load:g}']:.2f}x at {load:g} jobs/h" for load in found)
        + ": a policy with a long queue looks fair beside it. The paper does not give its n.",
    ]
    return Findings(title, header, rows, said, [*charts(title, sweep, found), more], made)


def _fairness(usual: Summary, better: Summary) -> tuple[list[float], list[float]]:
    """Finish-time fairness of the measured jobs of both, by one measure: the isolated times of `better`."""
    alone = {done.name: done.jct_s / done.fairness for done in better.done}
    return [done.jct_s / alone[done.name] for done in usual.done], [done.fairness for done in better.done]


def fifo(inputs: Inputs) -> Findings:
    """FIFO, jobs of one GPU and of up to eight (section 7.3)."""
    schedulers = (Scheduler("FIFO", "gavel-fifo", aware=False), Scheduler("Gavel", "gavel-fifo"))
    rows, made, drawn = [], {}, []
    for name, multiple, load in (("one GPU", False, 5.6), ("up to 8 GPUs", True, 2.6)):
        sweep = LoadSweep(schedulers=schedulers, loads=(load,), multiple=multiple)
        found = sweep.found(inputs)
        by = found[load]
        made[f"fifo_gain_{'multiple' if multiple else 'single'}_at_{load:g}"] = gain(by, "FIFO", "Gavel")
        row = (name, f"{load:g}", *(f"{avg_h(by[one.label]):.1f}" for one in schedulers))
        rows.append((*row, f"{gain(by, 'FIFO', 'Gavel'):.2f}x", "2.7x at high load"))
        drawn += charts(f"Gavel, FIFO, jobs of {name}", sweep, found)[1:]
    said = [*notes(inputs), "The paper gives 2.7x for one load that it calls high; with pairs see gavel-packing."]
    header = ("jobs of", "jobs/h", "FIFO, h", "Gavel, h", "gain", "the paper")
    return Findings("Gavel, section 7.3: FIFO", header, rows, said, drawn, made)


def priorities(inputs: Inputs) -> Findings:
    """LAS, a fifth of the jobs with a weight of 5 (section 7.3)."""
    sweep = LoadSweep(schedulers=(LAS, GAVEL_LAS), loads=(5.6,), multiple=False, important=0.2)
    found = sweep.found(inputs)
    rows, made = [], {}
    for load, by in found.items():
        for name, above, paper in (("high", True, "1.5x"), ("low", False, "2.7x")):
            both = [
                mean([done.jct_s for done in by[one.label].done if (done.weight > 1.0) == above]) / HOUR
                for one in sweep.schedulers
            ]
            made[f"{name}_gain_at_{load:g}"] = both[0] / both[1]
            rows.append((name, f"{load:g}", *(f"{value:.1f}" for value in both), f"{both[0] / both[1]:.2f}x", paper))
    said = [*notes(inputs), "High priority is a weight of 5; the paper does not tell its weight, nor the load."]
    header = ("priority", "jobs/h", "LAS, h", "Gavel, h", "gain", "the paper")
    title = "Gavel, section 7.3: LAS with priorities"
    return Findings(title, header, rows, said, charts(title, sweep, found), made)
