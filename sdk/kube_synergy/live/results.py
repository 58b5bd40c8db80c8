"""What a submitted function returned, or how it failed, from the log of its job's rank 0."""

import json
from collections.abc import Iterable
from typing import Any

from kube_synergy.errors import NoResultError
from kube_synergy.live.cluster import Cluster
from kube_synergy.live.following import log_lines, worker_pods
from kube_synergy.remote.kube_synergy_run import MARK

_LOST_PEER = "PeerLostError: "
"""Last line of the traceback of a process that ended because another one had failed."""
_TAIL = 5000
"""Last lines of the log in which the record is searched for; what a script prints after it comes from its `atexit`."""


async def newest_record(cluster: Cluster, job: str, uid: str) -> dict[str, Any] | None:
    """The record of the newest run: it has `value`, `unusable` or `traceback`. None where the log has none.

    Of several tracebacks it has that of the rank that failed by itself.
    """
    pods = await worker_pods(cluster, job, uid)
    newest = max((pod.run for pod in pods), default=0)
    found: dict[str, Any] | None = None
    # any rank may have failed, and only rank 0 returns
    for pod in pods:
        if pod.run == newest:
            record = record_of([line.text async for line in log_lines(cluster, [pod], tail=_TAIL) if not line.problem])
            if record is not None and not _lost_its_peer(record):
                return record
            found = found or record
    return found


def _lost_its_peer(record: dict[str, Any]) -> bool:
    lines = str(record.get("traceback", "")).strip().splitlines()
    return bool(lines) and _LOST_PEER in lines[-1]


def record_of(lines: Iterable[str]) -> dict[str, Any] | None:
    """The last whole record in the lines."""
    found: dict[str, Any] | None = None
    parts: list[str] = []
    for line in lines:
        mark, _, rest = line.partition(" ")
        if mark != MARK:
            continue
        place, _, part = rest.partition(" ")
        number, _, total = place.partition("/")
        if number == "1":
            parts = []
        parts.append(part)
        if str(len(parts)) != number or number != total:
            continue
        try:
            found = json.loads("".join(parts))
        except ValueError:
            continue
    return found


def value_of(job: str, record: dict[str, Any] | None) -> Any:
    """What the function returned. Raises NoResultError, which says why it is not there."""
    if record is None:
        raise NoResultError(
            f"{job} has no result in its log: it runs a script, or its pods are deleted; "
            "write what must last into the checkpoint volume"
        )
    if "value" not in record:
        told = record.get("unusable") or "the newest run ended with an exception"
        raise NoResultError(f"{job}: {told}; return plain values, and write the rest into the checkpoint volume")
    return record["value"]
