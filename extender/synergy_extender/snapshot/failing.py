"""The cluster without the nodes that keep failing jobs."""

from dataclasses import replace

from synergy_api.cluster.failing_nodes import JobRuns, avoiding, find_failing_nodes
from synergy_api.resources.scheduling_policy import FailingNodes
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView


def without_failing_nodes(state: ClusterState, options: FailingNodes, now: float) -> ClusterState:
    """The state in which nodes that keep failing jobs take no new one, or one at a time. `now` is Unix time."""
    failed = {key: job for key, job in state.jobs.items() if job.failed_by_nodes}
    if not failed:
        return state
    jobs = (_runs_of(job) for job in failed.values())
    others = (_runs_of(job) for key, job in state.jobs.items() if key not in failed)
    failing = find_failing_nodes(jobs, state.nodes.values(), state.capacities, options, now, others=others)
    if not failing:
        return state
    return replace(state, capacities=avoiding(state.capacities, failing), failing=failing)


def _runs_of(job: JobView) -> JobRuns:
    return JobRuns(str(job.key), job.uid, job.status)
