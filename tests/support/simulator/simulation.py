"""Small clusters and traces for the simulator's tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Outcome
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile, read_profiles
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.workloads.workload import build_workload

PROFILES = {
    "models": {
        "hungry": {
            "V100": {
                str(gpus): {
                    "cpus": [3 * gpus, 6 * gpus, 12 * gpus],
                    "memory_gib": [62.5 * gpus],
                    "steps_per_s": [[1.0], [2.0], [3.0]],
                }
                for gpus in (1, 2, 4, 8)
            }
        },
        "frugal": {
            "V100": {
                str(gpus): {"cpus": [gpus, 3 * gpus], "memory_gib": [10 * gpus], "steps_per_s": [[1.0], [1.0]]}
                for gpus in (1, 2, 4, 8)
            }
        },
    }
}
"""`hungry` is up to three times as fast with more CPU than its share of 3; `frugal` is content with one CPU per GPU."""

CLUSTER = """pools:
  - {name: v, gpu_type: V100, nodes: 1, gpus_per_node: 2, cpus_per_node: 6, memory_gib_per_node: 125, cost_per_hour: 2}
"""


def server(gpus: int = 1, *, nodes: int = 1, cost_per_hour: float = 0.0) -> Cluster:
    """Servers with 3 CPUs and 62.5 GiB beside each GPU."""
    pool = SimulatedPool(
        name="v",
        gpu_type="V100",
        nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_node=3 * gpus,
        memory_gib_per_node=62.5 * gpus,
        cost_per_hour=cost_per_hour,
    )
    return Cluster((pool,))


def traced(name: str, arrival_s: float, steps: int, *, gpus: int = 1, model: str = "flat", **more: Any) -> TraceJob:
    """A job of a trace."""
    place = InputLocation("trace.csv", 2)
    return TraceJob(name=name, arrival_s=arrival_s, gpus=gpus, model=model, steps=steps, place=place, **more)


def flat(**speeds: float) -> ProfileTable:
    """Models that do not mind CPU and memory, by their steps per second; `flat` makes one."""
    known = {"flat": 1.0, **speeds}
    return ProfileTable(known.keys(), lambda model, _type, _gpus: flat_profile(known[model]))


def simulated(
    jobs: Sequence[TraceJob], cluster: Cluster | None = None, profiles: ProfileTable | None = None, **options: Any
) -> Outcome:
    """Simulate jobs, by default of one step per second on one GPU in rounds of 100 s."""
    workload = build_workload(jobs, profiles or flat(), cluster or server())
    return simulate(workload, Options.of(**{"round_s": 100.0, "mechanism": "proportional", **options}))


def times(outcome: Outcome) -> Mapping[str, tuple[float | None, float | None]]:
    """Start and end of each job."""
    return {run.task.name: (run.start_s, run.finish_s) for run in outcome.runs}


def native(folder: Path) -> ProfileTable:
    """The table of PROFILES."""
    path = folder / "profiles.json"
    path.write_text(json.dumps(PROFILES))
    return read_profiles(path)
