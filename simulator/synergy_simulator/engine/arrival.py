"""A job as the simulation keeps it from its arrival on."""

from synergy_simulator.engine.options import Options
from synergy_simulator.engine.partial import PartialProfiles
from synergy_simulator.engine.run import Run
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.inputs.links import Links
from synergy_simulator.workloads.workload import Task


def arrived(task: Task, options: Options, cluster: Cluster, partial: PartialProfiles, links: Links) -> Run:
    """The run of a task, with what the planner may know of it."""
    return Run(
        task,
        profiling_s=options.profiling_s,
        profiles=partial.of(task),
        preemption_cost_s=options.preemption_cost_s(task.checkpoint_bytes),
        fewest_nodes=cluster.fewest_nodes(task.gpus),
        links=links,
        tells_spread=options.plan.placement_sensitive,
    )
