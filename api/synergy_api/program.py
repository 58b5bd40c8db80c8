"""What a TrainingJob runs, and which jobs train the same model."""

import hashlib
import json
import re
from typing import Any, Final

from synergy_api.names import ANNOTATION_SCRIPT, SCRIPT_VOLUME


def program(template: dict[str, Any]) -> dict[str, Any]:
    """What runs by a template's first container, and what code it is brought; nothing of how much it is given."""
    container: dict[str, Any] = template["spec"]["containers"][0]
    return {
        "image": container.get("image"),
        "command": container.get("command") or [],
        "args": container.get("args") or [],
        "env": container.get("env") or [],
        "envFrom": container.get("envFrom") or [],
        **_brought_along(template, container),
    }


def model(template: dict[str, Any], *, gpus: int, batch_size: int | None) -> str:
    """A name that jobs have in common which run the same program, whatever their GPUs and their batch.

    The batch (samples per step, over all GPUs) is found by its value: that number, over all GPUs or per GPU, is ignored
    wherever the program has it. Empty for a template that is no pod's.
    """
    try:
        text = json.dumps(program(template), sort_keys=True, separators=(",", ":"), default=str)
    except (ValueError, TypeError, AttributeError, LookupError):  # the operator names the field
        return ""
    if batch_size is not None:
        numbers = {batch_size, max(1, batch_size // gpus)}
        text = re.sub(rf"(?<![\d.])({'|'.join(str(one) for one in sorted(numbers))})(?![\d.])", "*", text)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


_LENGTH: Final = 16

_CODE: Final = ("configMap", "secret", "projected", "image", "csi")
"""Volumes that may bring code. Claims and host paths hold data and checkpoints, and often have a name for each job."""


def _brought_along(template: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """What of a template that has it runs beside the image; empty for one that has nothing of it."""
    pod = template["spec"]
    volumes = [volume for volume in pod.get("volumes") or [] if any(kind in volume for kind in _CODE)]
    names = {volume["name"] for volume in volumes}
    mounts = [mount for mount in container.get("volumeMounts") or [] if mount.get("name") in names]
    script = ((template.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION_SCRIPT)
    parts = {
        "workingDir": container.get("workingDir"),
        "initContainers": pod.get("initContainers"),
        "volumes": [_by_content(volume, script) for volume in volumes] if script else volumes,
        "volumeMounts": mounts,
    }
    return {name: value for name, value in parts.items() if value}


def _by_content(volume: dict[str, Any], script: str) -> dict[str, Any]:
    """The volume. That of a submitted program has the hash of its content in place of its ConfigMap's name."""
    if volume["name"] != SCRIPT_VOLUME or not isinstance(volume.get("configMap"), dict):
        return volume
    return {**volume, "configMap": {**volume["configMap"], "name": script}}
