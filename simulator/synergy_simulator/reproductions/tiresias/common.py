"""What the reproductions of Tiresias have in common: the two workloads, and how policies are run on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from synergy_core.model.config import PriorityQueues
from synergy_core.policies.discretised.learned_thresholds import learned_thresholds
from synergy_simulator.engine.options import Options
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster, SimulatedPool
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import Inputs
from synergy_simulator.workloads.tiresias_mix import production_like, scaled_down
from synergy_simulator.workloads.workload import Workload, build_workload

GPU_HOUR = 3600.0
TESTBED_THRESHOLD = 3200.0
"""GPU-seconds (section 5.2)."""
STORAGE_BYTES_PER_S = 1.2e9
"""Of the testbed's file system, from each machine (section 5.1)."""
PRODUCTION_NOTE: Final = (
    "Trace: drawn, as the production trace is not public: the paper's GPU counts, nine jobs in ten log-normal with a "
    "median of 5 minutes, one in ten of 4 to 8 hours (simulator/synergy_simulator/workloads/tiresias_mix.py)."
)
TESTBED_NOTE: Final = (
    "Trace: 480 jobs on 60 GPUs as sections 5.1 and table 3 tell; training times are log-uniform within a bin, which "
    "they do not tell."
)


def production(inputs: Inputs) -> Workload:
    """The production-like trace: 2,000 jobs on 128 GPUs, or 300 on 64."""
    nodes, rate, count = (8, 15.0, 300) if inputs.quick else (16, 36.0, 2000)
    return build_workload(production_like(count, seed=inputs.seed, jobs_per_hour=rate), None, _cluster(nodes, 8))


def testbed_workload(inputs: Inputs) -> Workload:
    """The 480 jobs on 15 machines of 4 GPUs, or 160 of them on 8, with what it costs to preempt and to spread them."""
    jobs = scaled_down(seed=inputs.seed, jobs=160 if inputs.quick else 480)
    return build_workload(jobs, None, _cluster(8 if inputs.quick else 15, 4))


def _cluster(nodes: int, gpus: int) -> Cluster:
    pool = SimulatedPool(
        name="p100",
        gpu_type="P100",
        nodes=nodes,
        gpus_per_node=gpus,
        cpus_per_node=5.0 * gpus,
        memory_gib_per_node=64.0 * gpus,
    )
    return Cluster((pool,))


def learned(inputs: Inputs) -> tuple[float, ...]:
    """The threshold that finished jobs teach, as on a cluster: of another trace of the same generator, one seed on."""
    before = production(replace(inputs, seed=inputs.seed + 1))
    services = [task.gpus * task.alone_s for task in before.tasks]
    return learned_thresholds(services, 2) or (GPU_HOUR,)


def learned_note(inputs: Inputs, thresholds: Sequence[float]) -> str:
    """Where the learned threshold comes from."""
    hours = ", ".join(f"{threshold / GPU_HOUR:.2f}" for threshold in thresholds)
    return (
        f"The learned threshold is {hours} GPU-hours: what the jobs of another trace of the same generator, with seed "
        f"{inputs.seed + 1}, teach (SchedulingPolicy.spec.queues.learnThresholds)."
    )


def case(label: str, workload: Workload, policy: str, *, thresholds: Sequence[float], **more: Any) -> Case:
    """A simulation of one policy; 2d-gittins knows the distribution of the trace's own services, as in the paper."""
    knob = more.pop("promote_knob", None)
    services = tuple(task.gpus * task.alone_s for task in workload.tasks) if policy == "2d-gittins" else ()
    queues = PriorityQueues(thresholds_gpu_s=tuple(thresholds), service_gpu_s=services, promote_knob=knob)
    options = {"round_s": 60.0, "mechanism": "proportional", **more}
    return Case(label, workload, Options(policy=policy, queues=queues, **options))


def relative(summaries: Mapping[str, Summary], base: str) -> dict[str, tuple[float, float, float]]:
    """Average, median and 95th percentile of the JCT of each run, as multiples of those of `base`."""
    one = summaries[base].metrics
    return {
        name: (
            summary.metrics.avg_jct_s / one.avg_jct_s,
            summary.metrics.median_jct_s / one.median_jct_s,
            summary.metrics.p95_jct_s / one.p95_jct_s,
        )
        for name, summary in summaries.items()
    }


def times(value: float) -> str:
    """A multiple."""
    return f"{value:.2f}x"
