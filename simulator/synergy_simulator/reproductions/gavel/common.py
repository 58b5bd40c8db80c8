"""What the reproductions of Gavel have in common: speeds, traces, clusters, and how policies are run on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synergy_simulator.engine.options import Options
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.inputs.profiles import ProfileTable, read_profiles
from synergy_simulator.inputs.traces import TraceJob, read_trace
from synergy_simulator.reproductions.common import Inputs
from synergy_simulator.workloads.gavel_mix import PRICES, TYPES, built_in_speeds, drawn
from synergy_simulator.workloads.workload import Workload, build_workload

ROUND_S = 360.0
"""Six minutes (section 7.3)."""
GPUS_PER_NODE = 4
TRACE_NOTE: Final = (
    "Traces: drawn as section 7.1 says (26 job types, 10^x minutes on a V100, Poisson arrivals); the paper's own are "
    "not published."
)


@dataclass(frozen=True, slots=True)
class GavelInputs:
    """Speeds of the jobs, and the folder of the authors' traces."""

    speeds: ProfileTable
    speeds_note: str
    folder: Path | None
    """The authors' tables; None: built-in speeds serve."""
    physical: ProfileTable
    """Speeds measured on the physical cluster."""
    inputs: Inputs

    @staticmethod
    def of(inputs: Inputs) -> "GavelInputs":
        """The authors' tables where they are at hand, else what the project has itself."""
        folder = inputs.gavel
        if folder is None:
            own = built_in_speeds()
            return GavelInputs(own, "Speeds: the built-in ones, not the paper's measured ones.", None, own, inputs)
        return GavelInputs(
            read_profiles(folder / "simulation_throughputs.json"),
            "Speeds: the Gavel authors' table.",
            folder,
            read_profiles(folder / "physical_cluster_throughputs.json"),
            inputs,
        )

    def drawn(self, count: int, **more: Any) -> list[TraceJob]:
        """A trace as in section 7.1 (`gavel_mix.drawn`); `seed` adds to that of the command."""
        seed = self.inputs.seed + more.pop("seed", 0)
        return drawn(count, self.speeds, seed=seed, **more)

    def trace(self, name: str) -> list[TraceJob] | None:
        """One of the authors' own traces; None where it is not at hand."""
        path = None if self.folder is None else self.folder / name
        return None if path is None or not path.is_file() else read_trace(path)

    def workload(
        self, trace: Sequence[TraceJob], cluster: Cluster, *, physical: bool = False, unconsolidated: bool = False
    ) -> Workload:
        """A trace on a cluster with these speeds, on request also those of spread jobs."""
        speeds = self.physical if physical else self.speeds
        return build_workload(trace, speeds, cluster, unconsolidated=unconsolidated)


def cluster(gpus: Mapping[str, int] | int, *, per_node: int = GPUS_PER_NODE) -> Cluster:
    """So many GPUs of each type, so many to a node (the rest on one more), at the paper's prices."""
    of_type = gpus if isinstance(gpus, Mapping) else dict.fromkeys(TYPES, gpus)
    pools = []
    for gpu_type, count in of_type.items():
        whole, rest = divmod(count, per_node)
        for nodes, size in ((whole, per_node), (1 if rest else 0, rest)):
            if nodes:
                pools.append(_pool(gpu_type, nodes, size))
    return Cluster(tuple(pools))


def _pool(gpu_type: str, nodes: int, gpus: int) -> SimulatedPool:
    return SimulatedPool(
        name=f"{gpu_type.lower()}-{gpus}",
        gpu_type=gpu_type,
        nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_node=4.0 * gpus,
        memory_gib_per_node=60.0 * gpus,
        cost_per_hour=PRICES[gpu_type],
    )


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A policy as a reproduction runs it."""

    label: str
    policy: str
    aware: bool = True


LAS: Final = Scheduler("LAS", "max-min-fairness", aware=False)
GAVEL_LAS: Final = Scheduler("Gavel", "max-min-fairness")


def options(scheduler: Scheduler, *, measure: tuple[int, int] | None = None, **more: Any) -> Options:
    """Rounds of six minutes; with a window, until its jobs are done."""
    settings = {
        "policy": scheduler.policy,
        "aware": scheduler.aware,
        "mechanism": "proportional",
        "round_s": ROUND_S,
        "measure": measure,
        "until_measured_done": measure is not None,
    }
    return Options.of(**{**settings, **more})
