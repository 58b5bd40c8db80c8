"""What identical jobs have in common: the name under which their profile is shared."""

import hashlib
import json
from typing import Any, Final

from synergy_api.training_job import TrainingJobSpec

_LENGTH: Final = 32


def fingerprint(spec: TrainingJobSpec) -> str:
    """Hash of everything in the spec that a job's matrix depends on: what runs (image, command, arguments, environment,
    code that a ConfigMap, a Secret, an image volume or an init container brings) and how its steps are seen, how much
    at once (GPUs, batch size), and what bounds the matrix and how well it is known (data set, resource maximum,
    CPU step, measured steps, or the matrices that were provided)."""
    container: dict[str, Any] = spec.template["spec"]["containers"][0]
    profile = spec.profile
    parts = {
        "image": container.get("image"),
        "command": container.get("command") or [],
        "args": container.get("args") or [],
        "env": container.get("env") or [],
        "envFrom": container.get("envFrom") or [],
        **_brought_along(spec.template["spec"], container),
        "gpus": spec.gpus,
        "gpusPerWorker": spec.gpus_per_worker,
        "batchSize": spec.batch_size,
        "throughput": spec.throughput.to_wire() if spec.throughput else None,
        "dataset": spec.dataset.to_wire() if spec.dataset else None,
        "max": spec.resources.max.to_wire(),
        "cpuStep": profile.cpu_step,
        "steps": [profile.warmup_steps, profile.steps],
        "mode": profile.mode,
        "matrices": [matrix.to_wire() for matrix in profile.matrices] if profile.mode == "Provided" else [],
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


_CODE: Final = ("configMap", "secret", "projected", "image", "csi")
"""Volumes that may bring code. Claims and host paths hold data and checkpoints, and often have a name for each job."""


def _brought_along(pod: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    """What of a template that has it runs beside the image; empty for one that has nothing of it."""
    volumes = [volume for volume in pod.get("volumes") or [] if any(kind in volume for kind in _CODE)]
    names = {volume["name"] for volume in volumes}
    mounts = [mount for mount in container.get("volumeMounts") or [] if mount.get("name") in names]
    parts = {
        "workingDir": container.get("workingDir"),
        "initContainers": pod.get("initContainers"),
        "volumes": volumes,
        "volumeMounts": mounts,
    }
    return {name: value for name, value in parts.items() if value}
