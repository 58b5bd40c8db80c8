"""The check that a pod's share of a node is enough for all of its containers."""

from collections.abc import Mapping
from typing import Any

from synergy_api.amounts import Amounts
from synergy_api.cluster.pods import init_requests, sidecar_requests
from synergy_api.reasons import Finding, Reason, say


def too_small(template: Mapping[str, Any], share: Amounts) -> Finding | None:
    """Why one worker pod's share is too small for the template's containers; None if it is enough."""
    pod = template["spec"]
    beside = sidecar_requests(pod)
    facts = {f"share_{name}": quantity for name, quantity in share.quantities.items()}
    if min(share.minus(beside).beside_gpus) <= 0:
        return say(Reason.SIDECARS_TOO_LARGE, **beside.quantities, **facts)
    for name, needs in init_requests(pod).items():
        if min(share.minus(needs).beside_gpus) < 0:
            return say(Reason.INIT_CONTAINER_TOO_LARGE, container=name, **needs.quantities, **facts)
    return None
