"""The jobs that a decision may change.

Of most running jobs nothing is pending, and the plan gives them what they have.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.resources.training_job import FINISHED
from synergy_core.model import snapshot as core
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.order import key_of
from synergy_extender.decisions.plan_result import PlanResult


class KnownPlaces:
    """Places of which it was found that runs at rest have just these. For one caller that decides again and again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[JobView, core.Allocation]] = {}
        self._capacities: Sequence[NodeCapacity] = ()

    def begin(self, capacities: Sequence[NodeCapacity]) -> None:
        """Another decision. What was found on other nodes is forgotten."""
        if capacities != self._capacities:
            self._known = {}
        self._capacities = capacities

    def note(self, job: JobView, place: core.Allocation) -> None:
        """A run at rest has this place and needs no change."""
        if job.at_rest:
            self._known[place.job] = (job, place)

    def stays(self, jobs: Mapping[Key, JobView], places: Iterable[core.Allocation]) -> set[Key]:
        """The jobs of which that is known, and nothing has changed since. Others are forgotten."""
        before, self._known = self._known, {}
        found: set[Key] = set()
        for place in places:
            known = before.get(place.job)
            if known is not None and known[1] is place and jobs.get(known[0].key) is known[0]:
                self._known[place.job] = known
                found.add(known[0].key)
        return found


def concerned(
    state: ClusterState,
    result: PlanResult | None,
    places: KnownPlaces,
    *,
    unstarted: Iterable[Key],
    counted: Collection[str],
) -> list[JobView]:
    """The jobs in which a decision may change something, in the order of the cluster's.

    Those are all that are not at rest; those at rest whose place the plan changes, or of which it says something; those
    in `unstarted`, and those with a UID in `counted`.
    """
    told: set[Key] = set(unstarted)
    stays: Container[Key] = ()
    if result is not None:
        plan = result.plan
        told |= {key_of(name) for name in plan.promoted}
        told |= {key_of(one.job) for one in plan.isolated}
        told |= {key_of(one.job) for one in plan.estimates}
        told |= {key for key, one in result.entitled.by_job.items() if one.restriction is not None}
        stays = places.stays(state.jobs, plan.allocations)
    if counted:
        told |= {key for key, job in state.jobs.items() if job.uid in counted}
    return [
        job
        for key, job in state.jobs.items()
        if not job.at_rest
        or key in told
        or (result is not None and key not in stays and job.status.phase not in FINISHED)
    ]
