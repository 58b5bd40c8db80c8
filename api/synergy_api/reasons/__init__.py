"""The closed list of reasons: what conditions, events, ended runs and the queue say, and what to change.

Code anywhere names a `Reason` and gives the facts that its text asks for; `docs/troubleshooting.md` is generated from
the same list.
"""

from dataclasses import dataclass
from typing import Final

from synergy_api.reasons.entry import Entry, EventKind, ReasonPlace
from synergy_api.reasons.of_cluster import CLUSTER
from synergy_api.reasons.of_deadlines import DEADLINES
from synergy_api.reasons.of_profiles import PROFILES
from synergy_api.reasons.of_queue import QUEUE
from synergy_api.reasons.of_relations import RELATIONS
from synergy_api.reasons.of_runs import RUNS
from synergy_api.reasons.of_specs import SPECS
from synergy_api.reasons.of_worker_clusters import WORKER_CLUSTERS
from synergy_api.reasons.words import Reason

__all__ = ["ENTRIES", "Entry", "EventKind", "Finding", "Reason", "ReasonPlace", "say"]

ENTRIES: Final[dict[Reason, Entry]] = {
    **SPECS,
    **PROFILES,
    **RUNS,
    **RELATIONS,
    **WORKER_CLUSTERS,
    **QUEUE,
    **DEADLINES,
    **CLUSTER,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason with its words."""

    reason: Reason
    message: str


def say(reason: Reason, **facts: object) -> Finding:
    """The reason's text with `facts` filled in. Raises KeyError if a fact that the text asks for is missing."""
    return Finding(reason, ENTRIES[reason].text.format(**facts))
