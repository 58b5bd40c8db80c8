"""The cluster without the nodes that keep failing jobs."""

from dataclasses import replace

from synergy_api.cluster.failing_nodes import JobRuns, avoiding, find_failing_nodes
from synergy_api.resources.scheduling_policy import FailingNodes
from synergy_extender.cluster.state import ClusterState


def without_failing_nodes(state: ClusterState, options: FailingNodes, now: float) -> ClusterState:
    """The state in which nodes that keep failing jobs take no new one, or one at a time. `now` is Unix time."""
    jobs = (JobRuns(str(job.key), job.uid, job.status) for job in state.jobs.values())
    failing = find_failing_nodes(jobs, state.nodes.values(), state.capacities, options, now)
    if not failing:
        return state
    return replace(state, capacities=avoiding(state.capacities, failing), failing=failing)
