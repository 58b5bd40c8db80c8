"""Reasons of jobs that run in worker clusters: where they are, and why they are in none."""

from typing import Final

from synergy_api.reasons.entry import Entry, ReasonPlace
from synergy_api.reasons.words import Reason

_O: Final = (ReasonPlace.OFFERED,)

WORKER_CLUSTERS: Final[dict[Reason, Entry]] = {
    Reason.OFFERED_TO_CLUSTER: Entry(
        _O,
        "cluster {cluster} has the job and starts it {start}",
        means="Until it starts there, it may be offered to another cluster. The start is a forecast if there is one.",
    ),
    Reason.STAYS_IN_CLUSTER: Entry(_O, "cluster {cluster} has the job and may start it; it stays there"),
    Reason.CLUSTER_AWAY: Entry(
        _O,
        "cluster {cluster} does not answer, or refuses the hub's Lease, since {since}: {next}",
        means="A job that may have started there is offered to no other cluster: it must not run twice.",
    ),
    Reason.NO_CLUSTER: Entry(
        _O,
        "no cluster takes the job: {problems}",
        "the job is offered again {when}",
        means="The list says of each worker cluster what keeps the job from it.",
    ),
    Reason.HUB_REFUSED: Entry(
        _O,
        "the hub's controller does not act: {why}",
        means="Worker clusters know newer data of this hub. By what it knows, the hub might start a job in one cluster "
        "that runs in another. What runs goes on.",
    ),
    Reason.GONE_IN_CLUSTER: Entry(
        (ReasonPlace.FINISHED,),
        "cluster {cluster} no longer has the job, though the hub did not delete it there",
        "create the job anew once its pods in that cluster are gone",
        "The job is not offered elsewhere, because its pods may still end there.",
    ),
    Reason.WAITING_FOR_HUB: Entry(
        (ReasonPlace.RUNNING,),
        "run {run} waits until the hub cluster has written that the job stays in this cluster",
        "if this lasts, find out whether the hub's controller of worker clusters runs and reaches this cluster",
        "Until then the hub may offer the job to another cluster, and it would run twice. After 5 minutes the run "
        "gives its GPUs back and is tried again later.",
        "Normal",
    ),
}
