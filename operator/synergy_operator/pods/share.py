"""The check that a pod's share of a node is enough for all of its containers."""

from collections.abc import Mapping
from typing import Any

from synergy_api.amounts import Amounts
from synergy_api.cluster.pods import init_requests, sidecar_requests
from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say


def too_small(template: Mapping[str, Any], share: Amounts) -> Finding | None:
    """Why one worker pod's share is too small for the template's containers; None if it is enough."""
    pod = template["spec"]
    beside = sidecar_requests(pod)
    facts = {"share_cpu": format_cpu(share.cpu_millis), "share_memory": format_bytes(share.memory_bytes)}
    if share.cpu_millis <= beside.cpu_millis or share.memory_bytes <= beside.memory_bytes:
        cpu, memory = format_cpu(beside.cpu_millis), format_bytes(beside.memory_bytes)
        return say(Reason.SIDECARS_TOO_LARGE, cpu=cpu, memory=memory, **facts)
    for name, needs in init_requests(pod).items():
        if needs.cpu_millis > share.cpu_millis or needs.memory_bytes > share.memory_bytes:
            cpu, memory = format_cpu(needs.cpu_millis), format_bytes(needs.memory_bytes)
            return say(Reason.INIT_CONTAINER_TOO_LARGE, container=name, cpu=cpu, memory=memory, **facts)
    return None
