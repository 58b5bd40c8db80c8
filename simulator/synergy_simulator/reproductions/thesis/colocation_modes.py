"""Who shares a GPU, decided in four ways on the same jobs: average JCT of none, thesis, gavel and auto.

Not in the papers: jobs that differ in all that they look at, one by one. Matrices over CPU and memory (Synergy), speeds
on three GPU types (Gavel), and how busy they keep a GPU (the thesis).
"""

from collections.abc import Mapping
from itertools import product
from typing import Final

from synergy_core.model.config import ColocationMode
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.sharing.truth import BUILT_IN
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.reproductions.common import Findings, Inputs, avg_h
from synergy_simulator.workloads.generator import SINGLE, Split
from synergy_simulator.workloads.models import built_in_profiles
from synergy_simulator.workloads.workload import Workload, build_workload, with_usages

MODES: Final[tuple[ColocationMode, ...]] = ("none", "thesis", "thesis-fractions", "gavel", "auto")
POLICIES: Final = ("max-min-fairness", "gavel-fifo")
SPLITS: Final[Mapping[str, Split]] = {
    "(20,70,10)": Split(20, 70, 10),
    "(60,20,20)": Split(60, 20, 20),
}
SLOWER: Final = {"V100": 1.0, "P100": 1.7, "K80": 4.0}
"""How many times as long a GPU takes for a step."""
GPU_MEMORY_GIB: Final = {"V100": 16.0, "P100": 16.0, "K80": 12.0}
LOAD: Final = 2.0
"""Jobs per hour on one node of four GPUs of each type: more than they can bear alone."""


ROUND_S: Final = 900.0


def modes(inputs: Inputs) -> Findings:
    """All modes on each trace with two and three clients on a GPU."""
    jobs = 14 if inputs.quick else 40
    splits = dict(list(SPLITS.items())[:1]) if inputs.quick else SPLITS
    policies = POLICIES[:1] if inputs.quick else POLICIES
    grid = list(product(policies, splits, (2,) if inputs.quick else (2, 3)))
    cases = [
        Case(
            f"{policy} {split} {replicas} {mode}",
            _workload(inputs, jobs, splits[split], replicas),
            _options(policy, mode),
        )
        for policy, split, replicas in grid
        for mode in MODES
    ]
    answers = iter(inputs.run(cases))
    rows, figures = [], dict[str, float]()
    for policy, split, replicas in grid:
        hours = {mode: avg_h(next(answers)) for mode in MODES}
        behind = hours["auto"] / min(hours.values()) - 1.0
        rows.append((policy, split, f"{replicas}", *(f"{hours[mode]:.2f}" for mode in MODES), f"{behind:+.1%}"))
        figures |= {f"{policy}_{split}_{replicas}_{mode}_h": value for mode, value in hours.items()}
        figures["auto_behind_at_most"] = max(figures.get("auto_behind_at_most", 0.0), behind)
    header = ("policy", "split", "on a GPU", *(f"{mode}, h" for mode in MODES), "auto behind the best")
    differs = [
        "Not in the papers. Models, matrices and usages are the built-in ones.",
        "A step takes 1.7 times as long on a P100 as on a V100, 4 times on a K80.",
        f"{jobs} jobs of one GPU, {LOAD:g} per hour on a node of 4 GPUs, 12 CPUs and 250 GiB of each type.",
        f"Mechanism tune, rounds of {ROUND_S / 60:g} minutes, seed {inputs.seed}.",
    ]
    return Findings("Which jobs share a GPU: average JCT", header, rows, differs, (), figures)


def _options(policy: str, mode: ColocationMode) -> Options:
    return Options.of(policy=policy, mechanism="tune", colocation=mode, round_s=ROUND_S)


def _workload(inputs: Inputs, jobs: int, split: Split, replicas: int) -> Workload:
    profiles = built_in_profiles(SLOWER)
    trace = inputs.derived(jobs, split, load=LOAD, gpu_mix=SINGLE, models=profiles.models)
    pools = tuple(
        SimulatedPool(
            name=gpu_type.lower(),
            gpu_type=gpu_type,
            nodes=1,
            gpus_per_node=4,
            cpus_per_node=12.0,
            memory_gib_per_node=250.0,
            replicas=replicas,
            gpu_memory_gib=memory,
        )
        for gpu_type, memory in GPU_MEMORY_GIB.items()
    )
    return with_usages(build_workload(trace, profiles, Cluster(pools)), BUILT_IN)
