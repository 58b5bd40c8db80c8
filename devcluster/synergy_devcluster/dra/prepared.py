"""Claims that are prepared on a node, and what their containers get: files, which outlive a restart of the driver.

A container's runtime would learn this by CDI. containerd 1.6 knows no CDI, so the devcluster's runtime applies the same
edits, which it finds by the container's name (`runtime.py`).
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from synergy_devcluster.dra.objects import DRIVER, Object
from synergy_devcluster.dra.runtime import edits_file
from synergy_devcluster.gpu_plugin.devices import Sharing


class ClaimError(Exception):
    """A claim that cannot be prepared; the text is for the pod's events."""


@dataclass(frozen=True)
class Allocated:
    """One device of a claim."""

    request: str
    pool: str
    device: str
    share_id: str = ""


def allocated(claim: Object) -> list[Allocated]:
    """The devices of this driver that the claim has.

    Raises:
        ClaimError: it has none.
    """
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    found = [
        Allocated(one["request"], one["pool"], one["device"], one.get("shareID", ""))
        for one in results
        if one["driver"] == DRIVER
    ]
    if not found:
        raise ClaimError(f"claim {claim['metadata']['name']} has no device of {DRIVER}")
    return found


def containers_of(claim: Object, pods: Iterable[Object]) -> list[tuple[str, str, str]]:
    """Namespace, pod and name of the containers that use the claim."""
    name = claim["metadata"]["name"]
    found = []
    for pod in pods:
        chosen = pod.get("status", {}).get("resourceClaimStatuses") or []
        generated = {one["name"]: one.get("resourceClaimName", "") for one in chosen}
        entries = pod["spec"].get("resourceClaims") or []
        here = {one["name"] for one in entries if name in (one.get("resourceClaimName"), generated.get(one["name"]))}
        metadata = pod["metadata"]
        found += [
            (metadata["namespace"], metadata["name"], container["name"])
            for container in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or [])]
            if here & {one["name"] for one in (container.get("resources") or {}).get("claims") or []}
        ]
    return found


class PreparedClaims:
    """The claims prepared on one node. `uuids` are the GPUs by device name."""

    def __init__(self, folder: Path, edits: Path, uuids: dict[str, str], sharing: Sharing, *, shared: bool) -> None:
        self._folder = folder
        self._edits = edits
        self._uuids = uuids
        self._sharing = sharing
        self._shared = shared
        for made in (folder, edits):
            made.mkdir(parents=True, exist_ok=True)

    def prepare(self, claim: Object, pods: Iterable[Object]) -> list[Allocated]:
        """Make the claim's devices known to its containers. Preparing it again changes nothing.

        Raises:
            ClaimError: a device is unknown, or another claim has it and it is not shared.
        """
        uid, devices = claim["metadata"]["uid"], allocated(claim)
        for one in devices:
            if one.device not in self._uuids:
                raise ClaimError(f"this node has no device {one.device}")
            holder = self._holder(one.device, uid)
            if holder and not self._shared:
                raise ClaimError(f"device {one.device} is in use by claim {holder}")
        edits = self._container_edits([self._uuids[one.device] for one in devices])
        containers = containers_of(claim, pods)
        record = {
            "name": claim["metadata"]["name"],
            "devices": [asdict(one) for one in devices],
            "containers": [list(one) for one in containers],
        }
        _write(self._folder / f"{uid}.json", record)
        for container in containers:
            _write(edits_file(self._edits, *container), edits)
        return devices

    def unprepare(self, uid: str) -> None:
        """Take it back; one that was never prepared is no error."""
        file = self._folder / f"{uid}.json"
        if not file.exists():
            return
        for container in json.loads(file.read_text(encoding="utf-8"))["containers"]:
            edits_file(self._edits, *container).unlink(missing_ok=True)
        file.unlink()

    def _holder(self, device: str, uid: str) -> str:
        for file in sorted(self._folder.glob("*.json")):
            record = json.loads(file.read_text(encoding="utf-8"))
            if file.stem != uid and device in {one["device"] for one in record["devices"]}:
                return str(record["name"])
        return ""

    def _container_edits(self, uuids: list[str]) -> dict[str, Any]:
        """As CDI writes them."""
        ids = [f"{uuid}::0" for uuid in uuids] if self._shared else uuids
        environment = self._sharing.environment(ids)
        return {
            "env": [f"{name}={value}" for name, value in environment.items()],
            "mounts": [
                {
                    "hostPath": mount.host_path,
                    "containerPath": mount.container_path,
                    "options": ["rbind", "ro" if mount.read_only else "rw"],
                }
                for mount in self._sharing.mounts()
            ],
        }


def _write(file: Path, content: Any) -> None:
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(file)
