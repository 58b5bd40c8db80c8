"""Time and memory of decoding a list of pods. Each way runs in a process of its own: `python -m ... WAY FOLDER`."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from synergy_kube.answers import Page
from synergy_kube.paging import PAGE_ITEMS

_MIB = 1 << 20


class Decoded(NamedTuple):
    """What one way took: seconds, and the most memory in MiB that the process had above what it had before."""

    way: str
    seconds: float
    peak_mib: float


def measure(pods: int) -> list[Decoded]:
    """Every way, one after the other, each in a new process.

    Raises subprocess.CalledProcessError if a process fails.
    """
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for form, size in (("pages", PAGE_ITEMS), ("whole", pods)):
            folder = Path(scratch) / form
            folder.mkdir()
            for first in range(0, pods, size):
                (folder / f"{first:09}.json").write_bytes(list_body(min(size, pods - first), first))
        for way in WAYS:
            command = [sys.executable, "-m", __name__, way, scratch]
            told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found.append(Decoded(way, **json.loads(told)))
    return found


def list_body(pods: int, first: int = 0) -> bytes:
    """A PodList as the API server sends it; each pod has about 3 KB."""
    items = [_pod(index) for index in range(first, first + pods)]
    whole = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items}
    return json.dumps(whole, separators=(",", ":")).encode()


def _raw(body: bytes) -> list[tuple[str, str]]:
    """As a reflector reads: object by object, of each its name and phase are kept."""
    return [(item["metadata"]["name"], item["status"]["phase"]) for item in Page(body)]


def _raw_kept(body: bytes) -> list[dict[str, Any]]:
    """All objects as dicts."""
    return list(Page(body))


def _typed(body: bytes) -> list[tuple[str, str]]:
    """As the package reads: a V1PodList, of each pod its name and phase are kept."""
    return [(item.metadata.name, item.status.phase) for item in _models(body)]


def _typed_kept(body: bytes) -> list[Any]:
    """All objects as models."""
    return list(_models(body))


def _models(body: bytes) -> Any:
    from kubernetes.aio.client import ApiClient  # noqa: PLC0415 - the other ways do without it

    client: Any = ApiClient.__new__(ApiClient)  # to decode, it needs no configuration
    return client.deserialize(body.decode(), "V1PodList", "application/json").items


WAYS: Mapping[str, tuple[str, Callable[[bytes], Sequence[object]]]] = {
    "msgspec, pages": ("pages", _raw),
    "kubernetes, pages": ("pages", _typed),
    "msgspec, whole": ("whole", _raw_kept),
    "kubernetes, whole": ("whole", _typed_kept),
}
"""The first is the project's. Of `pages` of 500 objects a name and a phase of each is kept, of a `whole` answer all."""


def main(way: str, scratch: Path) -> None:
    """Measure one way in this process and print it as JSON."""
    form, decode = WAYS[way]
    decode(list_body(1))  # imports, and what is made once
    files = sorted((scratch / form).iterdir())
    before, seconds = _resident("VmRSS"), 0.0
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM from now on
    kept: list[object] = []
    for file in files:
        body = file.read_bytes()
        began = time.perf_counter()
        kept += decode(body)
        seconds += time.perf_counter() - began
        del body
    print(json.dumps({"seconds": seconds, "peak_mib": _resident("VmHWM") - before}))  # noqa: T201


def _resident(field: str) -> float:
    """VmRSS is what the process holds now, VmHWM the most that it held; in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024 / _MIB


def _pod(index: int) -> dict[str, Any]:
    env = [{"name": f"SETTING_{number}", "value": f"value-{index}-{number}"} for number in range(12)]
    mounts = [{"name": f"volume-{number}", "mountPath": f"/mnt/{number}"} for number in range(4)]
    container = {
        "name": "train",
        "image": "images.example/train:1",
        "command": ["python3", "train.py"],
        "env": env,
        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
        "volumeMounts": mounts,
        "imagePullPolicy": "IfNotPresent",
    }
    times = {"lastProbeTime": None, "lastTransitionTime": "2026-11-01T00:00:00Z"}
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    running = {"running": {"startedAt": "2026-11-01T00:00:00Z"}}
    managed: dict[str, Any] = {
        "f:metadata": {"f:labels": {".": {}, **{f"f:label-{number}": {} for number in range(12)}}}
    }
    return {
        "metadata": {
            "name": f"train-{index}",
            "namespace": f"team-{index % 20}",
            "uid": f"{index:032x}",
            "resourceVersion": str(index),
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "labels": {f"label-{number}": f"value-{index}" for number in range(12)},
            "annotations": {f"annotation-{number}": "a" * 40 for number in range(6)},
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": managed}],
        },
        "spec": {
            "nodeName": f"node-{index % 1000}",
            "containers": [container],
            "volumes": [{"name": f"volume-{number}", "emptyDir": {}} for number in range(4)],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{index // 250 % 250}.{index % 250}",
            "conditions": [{"type": kind, "status": "True", **times} for kind in kinds],
            "containerStatuses": [
                {
                    "name": "train",
                    "image": "images.example/train:1",
                    "imageID": f"sha256:{'0' * 64}",
                    "ready": True,
                    "restartCount": 0,
                    "state": running,
                }
            ],
        },
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
