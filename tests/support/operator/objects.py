"""TrainingJobs, nodes and places as the operator reads them: JSON as the API server has it."""

from typing import Any

from synergy_api.timestamps import format_time

Json = dict[str, Any]

START = 1_800_000_000.0
GIB = 1 << 30


def node(name: str, *, kind: str = "V100", gpus: int = 8, cpu: int = 24, gib: int = 64, ready: bool = True) -> Json:
    """A GPU node."""
    return {
        "metadata": {"name": name, "resourceVersion": "1", "labels": {"nvidia.com/gpu.product": kind}},
        "spec": {},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": str(cpu), "memory": f"{gib}Gi"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def job_manifest(name: str = "job", **spec: Any) -> Json:
    """A TrainingJob as the API server has it: one GPU, no profile wanted, unless `spec` says otherwise."""
    container = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"], "args": ["--fast"]}
    return {
        "metadata": {
            "namespace": "team",
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": format_time(START - 60),
        },
        "spec": {
            "gpus": 1,
            "steps": 100,
            "template": {"spec": {"containers": [container]}},
            "profile": {"mode": "Skip"},
            **spec,
        },
    }


def workers_json(name: str, gpus: int, cpu_millis: int, gib: int) -> Json:
    """One entry of `allocation.workers`."""
    return {"node": name, "gpus": gpus, "cpuMillis": cpu_millis, "memoryBytes": gib * GIB}
