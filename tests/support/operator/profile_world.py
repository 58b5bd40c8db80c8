"""A profile series in the operator's small world: asked for, granted, and measured point by point."""

import json
from collections.abc import Callable
from typing import Any

from support.operator.objects import GIB
from support.operator.world import World

AUTO = {"mode": "Auto"}
SIDE = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
TRAIN = {"name": "train", "image": "i", "command": ["c"]}


def measured(speed: float, rss: int = 1 << 28, **more: Any) -> str:
    """The harness's message of a good run."""
    said = {"outcome": "measured", "steps_per_second": speed, "relative_error": 0.01, "steps": 50, "max_rss_bytes": rss}
    return json.dumps(said | more)


def failed(reason: str, message: str, tail: str = "") -> str:
    """The harness's message of a run that came to nothing."""
    return json.dumps({"outcome": "failed", "reason": reason, "message": message, "exit_code": 1, "log_tail": tail})


def asking(**spec: Any) -> World:
    """A job that asks for its profile on one type of 24-CPU nodes with 8 GPUs."""
    world = World(**{"profile": AUTO, **spec})
    world.settle()
    return world


def granted(**spec: Any) -> World:
    """The same with the place it asked for."""
    world = asking(**spec)
    give_place(world)
    world.settle()
    return world


def give_place(world: World) -> int:
    """The plan grants what is asked for."""
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    request = profile.request
    share = ("n1", request.gpus, request.cpu_millis, request.memory_bytes // GIB)
    return world.grant(share, purpose="Profile", gpu_type=request.gpu_type)


def run_point(
    world: World, speed_at: Callable[[int], float], gpu_at: Callable[[int], dict[str, Any]] | None = None
) -> int:
    """Let the profile Job that is under way run and end. Returns its CPU point. `gpu_at` is what nvidia-smi tells."""
    name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
    point = int(world.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/cpu-millis"])
    world.bind(f"{name}-x")
    world.start(f"{name}-x")
    world.settle()
    world.wait(7)
    told: dict[str, Any] = {} if gpu_at is None else {"gpu": gpu_at(point)}
    world.exit(f"{name}-x", 0, measured(speed_at(point), **told))
    world.finish_job(name)
    world.settle()
    return point


def knee(point: int) -> float:
    """A pipeline that needs 4.5 CPUs to keep its GPU busy."""
    return min(9.0, point / 500)
