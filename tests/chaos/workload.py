"""The jobs of a run, from its seed alone."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from support.extender.world import TOLERATIONS
from support.on_cluster.jobs import GIB, matrix

_LEAST_NODES = 8
_JOBS_PER_NODE = 12.5
GPU_TYPES = ("Tesla-V100-SXM2-16GB", "Tesla-T4")
_SIZES = [1] * 9 + [2] * 4 + [3] * 1 + [4] * 4 + [8] * 3
MOST_STEPS = 400
STOP_ANNOTATION = "kwok.kube-synergy.dev/stop-seconds"
STOP_SECONDS = 2
"""How long a container may take to save after SIGTERM: kwok deletes its pod then."""
_LOST_NODE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_LOST = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
"""Beyond the 50 s after which a node counts as lost, which is longer than one fails."""


@dataclass(frozen=True)
class Planned:
    """A job, and when it is submitted (seconds from the start)."""

    name: str
    at: float
    spec: Mapping[str, Any]

    @property
    def library(self) -> bool:
        """Whether its script uses the library."""
        return bool(self.spec["preemption"] != "Signal")


@dataclass(frozen=True)
class Neighbour:
    """Somebody else's pod, placed by the default kube-scheduler, and when it is made (seconds from the start)."""

    at: float
    manifest: Mapping[str, Any]


def fake_nodes(jobs: int) -> str:
    """Nodes of two GPU types for so many jobs: 64 GPUs on 16 nodes for 100. A job of 8 GPUs is a gang on two nodes
    at least."""
    nodes = max(_LEAST_NODES, math.ceil(jobs / _JOBS_PER_NODE))
    return f"V100={nodes}x4,T4={nodes}x4"


def neighbours(seed: int, count: int, seconds: float) -> list[Neighbour]:
    """So many pods of others with one or two GPUs each, made within `seconds`, which end by themselves."""
    chance = random.Random(f"neighbours {seed}")
    times = sorted(chance.uniform(0, seconds) for _ in range(count))
    return [Neighbour(at, _foreign(f"neighbour-{index:03}", chance)) for index, at in enumerate(times)]


def _foreign(name: str, chance: random.Random) -> dict[str, Any]:
    gpus = chance.choice([1, 1, 2])
    amounts = {"nvidia.com/gpu": str(gpus), "cpu": str(chance.choice([1, 6]) * gpus), "memory": f"{8 * gpus}Gi"}
    container = {"name": "other", "image": "example/other:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "metadata": {
            "name": name,
            "annotations": {"kwok.kube-synergy.dev/run-seconds": str(chance.randint(5, 25))},
        },
        "spec": {
            "containers": [container],
            "nodeSelector": {"type": "kwok"},
            "tolerations": TOLERATIONS,
            "restartPolicy": "Never",
        },
    }


def workload(seed: int, jobs: int, seconds: float, most_steps: int = MOST_STEPS) -> list[Planned]:
    """So many jobs, submitted within `seconds`, a third of them at once."""
    chance = random.Random(f"jobs {seed}")
    times = sorted(0.0 if chance.random() < 1 / 3 else chance.uniform(0, seconds) for _ in range(jobs))
    return [Planned(f"job-{index:03}", at, _spec(chance, most_steps)) for index, at in enumerate(times)]


def plain_template() -> dict[str, Any]:
    """A pod template for the fake nodes, whose containers may save after SIGTERM."""
    container = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"]}
    return {
        "metadata": {"annotations": {STOP_ANNOTATION: str(STOP_SECONDS)}},
        "spec": {
            "containers": [container],
            "nodeSelector": {"type": "kwok"},
            "terminationGracePeriodSeconds": STOP_SECONDS,
            "tolerations": [*TOLERATIONS, *({"key": key, **_LOST} for key in _LOST_NODE)],
        },
    }


def _spec(chance: random.Random, most_steps: int) -> dict[str, Any]:
    gpus = chance.choice(_SIZES)
    types = chance.choice([GPU_TYPES[:1], GPU_TYPES[1:], GPU_TYPES])
    spec: dict[str, Any] = {
        "gpus": gpus,
        "steps": chance.randint(100, most_steps),
        "gpuTypes": list(types),
        "backoffLimit": 1000,
        "preemption": chance.choices(["Checkpoint", "Signal", "Never"], [8, 1, 1])[0],
        "template": plain_template(),
        "profile": _profile(chance, gpus, types),
    }
    if gpus > 1 and chance.random() < 0.4:
        spec["gpusPerWorker"] = 2 if gpus % 2 == 0 and chance.random() < 0.5 else 1
    return spec


def _profile(chance: random.Random, gpus: int, types: tuple[str, ...]) -> dict[str, Any]:
    match chance.choices(["Provided", "Skip", "Auto"], [6, 2, 2])[0]:
        case "Provided":
            knee = chance.choice([2, 9])
            curve = {1000 * gpus * cpus: gpus * min(1.0, cpus / knee) for cpus in (1, 2, 3, 6, 9)}
            return {"mode": "Provided", "matrices": [matrix(kind, curve, gpus * 8 * GIB) for kind in types]}
        case "Auto":
            return {"mode": "Auto", "steps": 20, "warmupSteps": 2, "timeoutSeconds": 120}
        case mode:
            return {"mode": mode}
