"""The ResourceClaim of one pod on a node whose GPUs are devices of DRA."""

import json
from typing import Any, Final

from synergy_api import names
from synergy_api.devices import device_class
from synergy_operator.pods.template import PodShare

REQUEST: Final = "gpus"
Object = dict[str, Any]


def claim(name: str, labels: dict[str, str], share: PodShare) -> Object:
    """The claim for a pod's share, without its owner. It selects the devices that the extender chose, by UUID. Without
    UUIDs any device of the class on the pod's node may be allocated.

    Devices that several claims may have are asked for by capacity.
    """
    exactly: Object = {
        "deviceClassName": device_class(share.resource),
        "allocationMode": "ExactCount",
        "count": share.gpus,
    }
    if share.device_ids:
        exactly["selectors"] = [{"cel": {"expression": selector(share.device_ids)}}]
    if share.capacity:
        exactly["capacity"] = {"requests": dict(share.capacity)}
    return {
        "metadata": {"name": name, "labels": {names.LABEL_JOB: labels[names.LABEL_JOB]}},
        "spec": {"devices": {"requests": [{"name": REQUEST, "exactly": exactly}]}},
    }


def selector(uuids: tuple[str, ...]) -> str:
    """A CEL expression that is true for the devices with these UUIDs, whatever their driver is called."""
    own = "device.attributes[device.driver]"
    return f'"uuid" in {own} && {own}.uuid in {json.dumps(list(uuids))}'


def asks_for(found: Object, wanted: Object) -> bool:
    """Whether a ResourceClaim that is there asks for what `wanted` does. Amounts of capacity are not compared: the API
    server may write them otherwise."""

    def asked(item: Object) -> list[Object]:
        requests = ((item.get("spec") or {}).get("devices") or {}).get("requests") or []
        return [one.get("exactly") or {} for one in requests]

    def facts(exactly: Object) -> list[Any]:
        fields = ("deviceClassName", "allocationMode", "count", "selectors", "adminAccess")
        return [
            *(exactly.get(field) for field in fields),
            sorted((exactly.get("capacity") or {}).get("requests") or {}),
        ]

    return list(map(facts, asked(found))) == list(map(facts, asked(wanted)))


def owned_by(manifest: Object, owner: Object) -> Object:
    """The claim with the pod or Job as its owner: it is deleted with it."""
    reference = {**owner, "controller": True, "blockOwnerDeletion": False}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}
