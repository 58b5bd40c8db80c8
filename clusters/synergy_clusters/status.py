"""What the hub's TrainingJob says: its copy's status, where it is, and why. Pure."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Final

from synergy_api.names import ANNOTATION_GIVE_UP
from synergy_api.parts.relations.clusters import OFFERED, ClusterOffer
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time
from synergy_clusters.views import Copy, HubJob

Status = dict[str, Any]
_COPIED: Final = (
    "phase", "problem", "queue", "late", "restriction", "progress", "summary", "startTime", "completionTime",
)  # fmt: skip
"""Of the copy's status. Its nodes, pods and profile mean nothing in the hub."""
_SLOW: Final = ("progress", "summary", "queue")
"""They change all the time, and are written every few seconds only."""

_STAYS: Final = (
    "the job may run there, so no other cluster gets it; if the cluster is lost for good, run: kubectl annotate "
    "trainingjob {name} --namespace {namespace} {annotation}={offer}"
)
_GIVEN_UP: Final = "its copy there was given up, and another cluster may have the job"
_GOES: Final = "the job has not started there, and is offered to another cluster soon"


def told(job: HubJob, offer: ClusterOffer, copy: Copy | None, offered: tuple[bool, Finding], now: float) -> Status:
    """The whole status. Without a copy it keeps what it says, if the offer has not changed. `offered` is the condition
    of that name; `now` is Unix time."""
    before: Mapping[str, Any] = job.item.get("status") or {}
    same = offer.offer == job.offer.offer and bool(offer.name)
    source: Mapping[str, Any] = copy.status if copy is not None else before if same else {}
    status: Status = {field: source[field] for field in _COPIED if field in source}
    status.setdefault("phase", "Suspended" if job.suspended else "Pending")
    observed = before.get("observedGeneration")
    if copy is not None and copy.generation == str(job.generation) and copy.status.get("observedGeneration"):
        observed = job.generation
    if observed is not None:
        status["observedGeneration"] = observed
    others = [one for one in source.get("conditions") or () if one["type"] != OFFERED]
    status["conditions"] = [_condition(OFFERED, *offered, before.get("conditions") or (), now), *others]
    status["cluster"] = offer.to_wire()
    return status


def failed(job: HubJob, now: float) -> Status:
    """The status of a job whose copy is gone."""
    finding = say(Reason.GONE_IN_CLUSTER, cluster=job.offer.name)
    before: Mapping[str, Any] = job.item.get("status") or {}
    status = told(job, job.offer, None, (True, say(Reason.STAYS_IN_CLUSTER, cluster=job.offer.name)), now)
    others = [one for one in status["conditions"] if one["type"] != "Finished"]
    finished = _condition("Finished", True, finding, before.get("conditions") or (), now)
    status.pop("queue", None)
    return {**status, "phase": "Failed", "completionTime": format_time(now), "conditions": [*others, finished]}


def is_urgent(before: Mapping[str, Any], after: Status) -> bool:
    """Whether more than progress and place in the queue changes: that is written at once."""
    return _quick(before) != _quick(after)


def _quick(status: Mapping[str, Any]) -> dict[str, Any]:
    quick = {field: value for field, value in status.items() if field not in _SLOW}
    return {**quick, "reason": (status.get("queue") or {}).get("reason")}


def offered_before(job: HubJob) -> tuple[str, str]:
    """Reason and message of the condition Offered, as the hub's job has it; empty if it has none."""
    conditions: Sequence[Mapping[str, Any]] = (job.item.get("status") or {}).get("conditions") or ()
    found: Mapping[str, Any] = next((one for one in conditions if one["type"] == OFFERED), {})
    return str(found.get("reason", "")), str(found.get("message", ""))


def offered_now(job: HubJob, *, reachable: bool, away_since: float) -> tuple[bool, Finding]:
    """The condition Offered of a job that stays as it is. `away_since` (Unix time) is since when its cluster has not
    answered."""
    cluster, (reason, message) = job.offer.name, offered_before(job)
    if not cluster:
        return False, say(Reason.SUSPENDED)
    if not reachable:
        if reason == Reason.CLUSTER_AWAY:
            return False, Finding(Reason.CLUSTER_AWAY, message)
        return False, _is_away(job, away_since, _stays(job) if job.offer.fixed else _GOES)
    if job.offer.fixed:
        return True, say(Reason.STAYS_IN_CLUSTER, cluster=cluster)
    if reason == Reason.OFFERED_TO_CLUSTER:
        return True, Finding(Reason.OFFERED_TO_CLUSTER, message)
    return True, say(Reason.OFFERED_TO_CLUSTER, cluster=cluster, start=start_in_words(inf, 0.0))


def start_in_words(start_s: float, now: float, why_unknown: str = "") -> str:
    """When a cluster starts a job; infinite: without a forecast, and why there is none if that is known."""
    if start_s == inf:
        return f"as soon as it can; there is no forecast: {why_unknown}" if why_unknown else "as soon as it can"
    return "at once, by forecast" if start_s <= now + 1 else f"at {format_time(float(int(start_s)))}, by forecast"


def given_up_now(job: HubJob, away_since: float) -> tuple[bool, Finding]:
    """The condition Offered of a job whose fixed copy has just been given up."""
    return False, _is_away(job, away_since, _GIVEN_UP)


def _is_away(job: HubJob, since: float, what: str) -> Finding:
    return say(Reason.CLUSTER_AWAY, cluster=job.offer.name, since=format_time(float(int(since))), next=what)


def _stays(job: HubJob) -> str:
    metadata = job.item["metadata"]
    return _STAYS.format(
        name=metadata["name"], namespace=metadata["namespace"], annotation=ANNOTATION_GIVE_UP, offer=job.offer.offer
    )


def _condition(
    kind: str, holds: bool, finding: Finding, before: Sequence[Mapping[str, Any]], now: float
) -> dict[str, Any]:
    value = "True" if holds else "False"
    previous = next((one for one in before if one["type"] == kind and one["status"] == value), None)
    return {
        "type": kind,
        "status": value,
        "reason": finding.reason.value,
        "message": finding.message[:4096],
        "lastTransitionTime": previous["lastTransitionTime"] if previous is not None else format_time(now),
    }
