"""Section 5.6: how near Tune comes to Opt's throughput, and how much faster it is.

Two kinds of rounds: of a cluster on which all jobs enter at once, planned from nothing; and those of a running
cluster in steady state, where a planner remembers what it worked out in the round before (`synergy_core.cache`).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from synergy_core.cache import Memory
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot
from synergy_core.plan import plan
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.reproductions.common import Findings, Inputs, mean
from synergy_simulator.workloads.generator import SINGLE, Split

SPLITS = (Split(20, 70, 10), Split(33, 33, 33), Split(50, 0, 50))
POLICIES = ("fifo", "srtf", "las")
EVERY = 40
"""One round in so many is sampled."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A round, planned by each mechanism: sums of speeds relative to the proportional share, and processor seconds."""

    proportional: float
    tune: float
    opt: float
    tune_s: float
    opt_s: float

    @property
    def gap(self) -> float:
        """How far tune is below opt."""
        return 1.0 - self.tune / self.opt

    @property
    def faster(self) -> float:
        """How many times faster tune is."""
        return self.opt_s / self.tune_s


def opt_gap(inputs: Inputs) -> Findings:
    """Sampled rounds of 128 GPUs, all of them taken."""
    nodes, samples = (4, 2) if inputs.quick else (16, 5)
    _sample(_at_once(inputs, SPLITS[0], 1, 0), "fifo", Memory())  # what is imported once is nobody's cost
    fresh = {split: [_sample(_at_once(inputs, split, nodes, n), "fifo") for n in range(samples)] for split in SPLITS}
    later = {policy: list(_of_a_running_cluster(inputs, policy, nodes, samples)) for policy in POLICIES}
    rows = [_row(f"all enter at once, {split}", found) for split, found in fresh.items()]
    rows += [_row(f"running cluster, {SPLITS[0]}, {policy}", found) for policy, found in later.items()]
    rows.append(("the paper, 128 GPUs", "", "", "", "within 10%", "", "", "200x"))
    header = ("rounds", "proportional", "tune", "opt", "tune below opt", "at most", "tune / opt, ms", "tune is faster")
    differs = [
        inputs.profiles_note,
        f"{samples} rounds of each kind; of a running cluster one in {EVERY}, once all GPUs are taken. Means.",
        "Opt's solver and machine differ from the paper's; times are processor time of this machine.",
    ]
    if inputs.quick:
        differs.append("Quick: 32 GPUs instead of 128.")
    every_round = [sample for found in (*fresh.values(), *later.values()) for sample in found]
    figures = {
        "worst_gap": max(sample.gap for sample in every_round),
        "mean_gap": mean([sample.gap for sample in every_round]),
        "faster_at_once": mean([sample.faster for found in fresh.values() for sample in found]),
        "faster_running": mean([sample.faster for found in later.values() for sample in found]),
    }
    return Findings("Section 5.6: Tune beside Opt", header, rows, differs, (), figures)


def _row(name: str, found: Sequence[Sample]) -> tuple[str, ...]:
    return (
        name,
        *(f"{mean([getattr(sample, what) for sample in found]):.1f}" for what in ("proportional", "tune", "opt")),
        f"{mean([sample.gap for sample in found]):.1%}",
        f"{max(sample.gap for sample in found):.1%}",
        f"{1000 * mean([s.tune_s for s in found]):.1f} / {1000 * mean([s.opt_s for s in found]):.0f}",
        f"{mean([sample.faster for sample in found]):.0f}x",
    )


def _at_once(inputs: Inputs, split: Split, nodes: int, sample: int) -> Snapshot:
    """As many jobs as GPUs, drawn from the split."""
    count = nodes * 8
    trace = inputs.derived(count * (sample + 1), split, load=None, gpu_mix=SINGLE)[-count:]
    cluster = homogeneous(nodes)
    tasks = inputs.workload(trace, cluster).tasks
    jobs = tuple(Job(name=task.name, gpus=1, profiles=task.profiles) for task in tasks)
    return Snapshot(nodes=cluster.nodes(), jobs=jobs)


def _of_a_running_cluster(inputs: Inputs, policy: str, nodes: int, samples: int) -> Iterator[Sample]:
    """Rounds of a simulation under a load that fills the cluster."""
    trace = inputs.derived(nodes * 50, SPLITS[0], load=0.75 * nodes, gpu_mix=SINGLE)
    workload = inputs.workload(trace, homogeneous(nodes))
    memory = Memory()
    found: list[Sample] = []
    seen = 0

    def watch(snapshot: Snapshot, config: PlanConfig) -> None:
        nonlocal seen
        if config.mode != "round" or len(found) == samples:
            return
        full = sum(job.running is not None for job in snapshot.jobs) == workload.cluster.gpus
        seen += full
        if full and seen % EVERY == 0:
            found.append(_sample(snapshot, policy, memory))
        else:
            plan(snapshot, config, memory)

    simulate(
        workload,
        Options.of(policy=policy, mechanism="tune", measure=(0, nodes * 40), until_measured_done=True),
        watch=watch,
    )
    return iter(found)


def _sample(snapshot: Snapshot, policy: str, memory: Memory | None = None) -> Sample:
    config = PlanConfig(policy=policy, mechanism="tune", explain=False)
    tune, tune_s = _planned(snapshot, config, memory)
    opt, opt_s = _planned(snapshot, replace(config, mechanism="opt"), memory)
    proportional, _ = _planned(snapshot, replace(config, mechanism="proportional"), memory)
    return Sample(proportional, tune, opt, tune_s, opt_s)


def _planned(snapshot: Snapshot, config: PlanConfig, memory: Memory | None) -> tuple[float, float]:
    """Sum of relative speeds, and the processor seconds that the plan took."""
    with collector_paused():
        started = time.process_time()
        answer = plan(snapshot, config, memory)
        seconds = time.process_time() - started
    return sum(given.steps_per_s / given.proportional_steps_per_s for given in answer.allocations), seconds
