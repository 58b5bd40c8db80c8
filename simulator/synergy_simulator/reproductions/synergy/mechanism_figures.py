"""Figures 11 and 13: mechanisms under workloads of which more or fewer jobs are sensitive."""

from collections.abc import Mapping, Sequence

from synergy_simulator.reproductions.common import Findings, Inputs, avg_h
from synergy_simulator.reproductions.sweeps import LONG_QUEUES, QUICK, W1, Scale, Sweep, jct_chart, scale_notes
from synergy_simulator.workloads.generator import PHILLY, SINGLE, Split

SPLITS = (W1, Split(33, 33, 33), Split(50, 0, 50))


def fig11(inputs: Inputs) -> Findings:
    """FIFO, jobs of up to 16 GPUs, under three workload splits."""
    mechanisms = ("proportional", "greedy", "tune")
    rows, charts, figures = [], [], {}
    sweeps = [_sweep(inputs, split, mechanisms, _loads(inputs)) for split in SPLITS]
    cases = [case for split, sweep in zip(SPLITS, sweeps, strict=True) for case in sweep.cases(inputs, f"{split} ")]
    answers = inputs.run(cases)
    size = len(mechanisms) * len(_loads(inputs))
    for index, (split, sweep) in enumerate(zip(SPLITS, sweeps, strict=True)):
        found = sweep.grouped(answers[index * size : (index + 1) * size])
        charts.append(jct_chart(f"FIFO, split {split}", found, mechanisms))
        for load, by in found.items():
            rows.append(_row(str(split), load, {name: avg_h(one) for name, one in by.items()}, mechanisms))
            for name in mechanisms:
                figures[f"{name}_{split}_at_{load:g}"] = avg_h(by[name])
    differs = [
        inputs.profiles_note,
        (
            "The paper: greedy breaks down as more jobs are sensitive, far above proportional at (50,0,50); tune "
            "is as good as proportional there. It gives curves, no figures."
        ),
        *scale_notes(_scale(inputs)),
    ]
    header = ("split", "jobs/h", *(f"{name}, h" for name in mechanisms), "gain of tune")
    return Findings("Figure 11: workload splits under FIFO, multi-GPU", header, rows, differs, charts, figures)


def fig13(inputs: Inputs) -> Findings:
    """DRF and Tetris, with static demands and tuned by Synergy, under W1 and W2."""
    mechanisms = ("proportional", "drf", "drf-tune", "tetris", "tetris-tune", "tune")
    workloads = {"W1 (20,70,10)": SPLITS[0], "W2 (50,0,50)": SPLITS[2]}
    load = (9.0,)
    sweeps = [_sweep(inputs, split, mechanisms, load, single=True) for split in workloads.values()]
    answers = inputs.run([case for n, sweep in zip(workloads, sweeps, strict=True) for case in sweep.cases(inputs, n)])
    rows, figures = [], {}
    for index, name in enumerate(workloads):
        mine = dict(zip(mechanisms, answers[index * len(mechanisms) :], strict=False))
        hours = {mechanism: avg_h(one) for mechanism, one in mine.items()}
        for kind, paper in (("drf", "7.2x"), ("tetris", "1.8x")):
            gain = hours[kind] / hours[f"{kind}-tune"]
            figures[f"{kind}_{name[:2]}"] = gain
            says = paper if name.startswith("W2") else "smaller than under W2"
            rows.append((name, kind, f"{hours[kind]:.1f}", f"{hours[f'{kind}-tune']:.1f}", f"{gain:.2f}x", says))
        rows.append(
            (
                name,
                "proportional, tune",
                f"{hours['proportional']:.1f}",
                f"{hours['tune']:.1f}",
                f"{hours['proportional'] / hours['tune']:.2f}x",
                "",
            )
        )
    differs = [
        inputs.profiles_note,
        "Single-GPU jobs at 9 jobs/h; the paper does not say which load it used.",
        *scale_notes(_scale(inputs)),
    ]
    header = ("workload", "mechanism", "static, h", "tuned, h", "gain", "the paper")
    return Findings("Figure 13: DRF and Tetris", header, rows, differs, (), figures)


def _sweep(
    inputs: Inputs, split: Split, mechanisms: Sequence[str], loads: Sequence[float], *, single: bool = False
) -> Sweep:
    return Sweep(
        policy="fifo",
        mechanisms=mechanisms,
        loads=loads,
        split=split,
        gpu_mix=SINGLE if single else PHILLY,
        scale=_scale(inputs),
    )


def _scale(inputs: Inputs) -> Scale:
    return QUICK if inputs.quick else LONG_QUEUES


def _loads(inputs: Inputs) -> Sequence[float]:
    return (7.0,) if inputs.quick else (5.5, 7.0)


def _row(split: str, load: float, hours: Mapping[str, float], mechanisms: Sequence[str]) -> tuple[str, ...]:
    gain = f"{hours['proportional'] / hours['tune']:.2f}x"
    return split, f"{load:g}", *(f"{hours[name]:.1f}" for name in mechanisms), gain
