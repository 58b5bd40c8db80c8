"""Section 5.6: how near Tune comes to Opt's throughput, and how much faster it is."""

import time

from synergy_core.model import Job, PlanConfig, Snapshot
from synergy_core.plan import plan
from synergy_simulator.generator import SINGLE, Split
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.reproductions.common import Findings, Inputs, mean

SPLITS = (Split(20, 70, 10), Split(33, 33, 33), Split(50, 0, 50))


def opt_gap(inputs: Inputs) -> Findings:
    """Rounds of a full cluster of 128 GPUs: sum of the jobs' speeds, each relative to its proportional share."""
    samples = 1 if inputs.quick else 5
    nodes = 4 if inputs.quick else 16
    rows, gaps, faster = [], [], []
    _planned(_round(inputs, SPLITS[0], 1, 0), "opt")  # what is imported and compiled once is nobody's cost
    for split in SPLITS:
        for sample in range(samples):
            snapshot = _round(inputs, split, nodes, sample)
            found = {name: _planned(snapshot, name) for name in ("proportional", "tune", "opt")}
            (usual, _), (tuned, tune_s), (best, opt_s) = found["proportional"], found["tune"], found["opt"]
            gaps.append(1.0 - tuned / best)
            faster.append(opt_s / tune_s)
            rows.append(
                (
                    f"{split} round {sample + 1}",
                    f"{usual:.1f}",
                    f"{tuned:.1f}",
                    f"{best:.1f}",
                    f"{gaps[-1]:.1%}",
                    f"{tune_s * 1000:.1f} / {opt_s * 1000:.0f}",
                    f"{faster[-1]:.0f}x",
                )
            )
    rows.append(("mean", "", "", "", f"{mean(gaps):.1%}", "", f"{mean(faster):.0f}x"))
    rows.append(("the paper", "", "", "", "within 10%", "", "200x"))
    header = ("split", "proportional", "tune", "opt", "tune below opt", "tune / opt, ms", "tune is faster")
    differs = [inputs.profiles_note, "Opt's solver and machine differ from the paper's; the times are of this machine."]
    if inputs.quick:
        differs.append("Quick: 32 GPUs instead of 128.")
    figures = {"worst_gap": max(gaps), "mean_gap": mean(gaps), "mean_faster": mean(faster)}
    return Findings("Section 5.6: Tune beside Opt", header, rows, differs, (), figures)


def _round(inputs: Inputs, split: Split, nodes: int, sample: int) -> Snapshot:
    """As many jobs as GPUs, drawn from the split."""
    count = nodes * 8
    trace = inputs.derived(count * (sample + 1), split, load=None, gpu_mix=SINGLE)[-count:]
    cluster = homogeneous(nodes)
    tasks = inputs.workload(trace, cluster).tasks
    jobs = tuple(Job(name=task.name, gpus=1, profiles=task.profiles) for task in tasks)
    return Snapshot(nodes=cluster.nodes(), jobs=jobs)


def _planned(snapshot: Snapshot, mechanism: str) -> tuple[float, float]:
    """Sum of relative speeds, and the seconds that the plan took."""
    started = time.perf_counter()
    answer = plan(snapshot, PlanConfig(policy="fifo", mechanism=mechanism))
    seconds = time.perf_counter() - started
    return sum(given.steps_per_s / given.proportional_steps_per_s for given in answer.allocations), seconds
