"""The library inside a training script: an iterator that keeps a job's lease, steps and checkpoints.

    import synergy_job

    checkpoint = synergy_job.Checkpoint("/checkpoints/model.pkl")

    def save(step):
        checkpoint.write({"step": step, "model": model})

    def load():
        state = checkpoint.read()
        ...
        return state["step"]

    for batch in synergy_job.iterate(loader, save=save, load=load):
        train(batch)

Needs the standard library only (Python 3.8 or newer).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from synergy_job.cache.cache import Cache, CacheError, EpochCounts
from synergy_job.cache.dataset import CachedDataset
from synergy_job.checkpoints.checkpoint import Checkpoint, CheckpointError, atomic_file, newest_checkpoint
from synergy_job.checkpoints.fence import FencedError
from synergy_job.cpus import cpus
from synergy_job.environment import ConfigError, Profile, read_environment
from synergy_job.gang.base import PeerLostError
from synergy_job.loop.data import LoaderError, epochs, one_epoch
from synergy_job.loop.rules import EXIT_YIELDED, CheckpointRules
from synergy_job.loop.script import finish, pause, report, until_finished
from synergy_job.loop.tensors import TensorSizes, tensor_sizes

if TYPE_CHECKING:
    from typing import Literal

    from synergy_job.loop.data import Loader

__all__ = [
    "EXIT_YIELDED",
    "Cache",
    "CacheError",
    "CachedDataset",
    "Checkpoint",
    "CheckpointError",
    "ConfigError",
    "EpochCounts",
    "FencedError",
    "LoaderError",
    "PeerLostError",
    "TensorSizes",
    "atomic_file",
    "cpus",
    "finish",
    "iterate",
    "newest_checkpoint",
    "pause",
    "report",
    "tensor_sizes",
]

T = TypeVar("T")


def iterate(
    loader: Loader[T],
    *,
    save: Callable[[int], object] | None = None,
    load: Callable[[], int | None] | None = None,
    steps: int | None = None,
    checkpoint_every_steps: int | None = None,
    checkpoint_every_seconds: float | None = None,
    save_on: Literal["first", "all"] = "first",
    model: object = None,
) -> Iterator[T]:
    """The batches to train on; one pass of the loop's body is one training step.

    Inside a TrainingJob: epochs over `loader` (see `synergy_job.loop.data.epochs` for what it may be) until the job's
    `steps`, `epochs` or `maxRunSeconds` are done, counted over all runs, or `finish()` is called. It begins after the
    step that `load()` returns. A step counts when the loop's body has ended. When the job must leave (lease not
    renewed, SIGTERM), the iterator finishes the running step, calls `save(step)` and raises `SystemExit(75)` out of the
    loop. `finally` and `atexit` of the script still run. In a job of several processes all leave after the same step.
    After the last step `save` is called as well, and the loop ends.

    In a profile run: batches without end until the harness stops the process; neither `save` nor `load` is called.

    Outside a cluster: `steps` batches, by default one epoch, and nothing else: no thread, no network, no `save`, no
    `load`.

    Arguments:
        loader: an iterable, a function of the epoch number, or a loader with `iter_from`.
        save: writes a checkpoint from which `load` can go on; called with the steps done, between two steps.
        load: restores the newest checkpoint and returns the step that `save` was given, None where there is none.
            Called once, before the first step, on every rank; all ranks must return the same step.
        steps: training steps outside a cluster; inside, the TrainingJob's `spec.steps` counts.
        checkpoint_every_steps: also save after each so many steps.
        checkpoint_every_seconds: also save after the first step that ends so many seconds after the last save.
        model: the PyTorch module that is trained, or a list of the bytes of each of its tensors. The planner estimates
            from it whether spreading the job across nodes slows it down; a module without sizes trains as well.
        save_on: `first` calls `save` on rank 0 alone, `all` on every rank after the same steps.

    Raises `ValueError` for wrong arguments, `ConfigError` for a wrong environment, and from the loop `LoaderError`,
    `CheckpointError`, and `PeerLostError` when another process of the job is gone.
    """
    if save_on not in {"first", "all"}:
        raise ValueError(f"save_on is {save_on!r}: it must be 'first' or 'all'")
    if steps is not None and steps <= 0:
        raise ValueError(f"steps is {steps}: it must be greater than 0")
    sizes = None if model is None else tensor_sizes(model)
    rules = CheckpointRules(save, load, checkpoint_every_steps, checkpoint_every_seconds, save_on == "all")
    place = read_environment(os.environ)
    if place is None:
        return until_finished(one_epoch(loader) if steps is None else islice(epochs(loader), steps))
    if isinstance(place, Profile):
        from synergy_job.loop.profiling import profile_steps  # noqa: PLC0415 - each kind of run loads what it needs

        return profile_steps(place, loader, sizes)
    if place.world_size > 1 and rules.every_rank and rules.every_seconds is not None:
        raise ValueError(
            "checkpoint_every_seconds cannot be used with save_on='all', clocks differ: use checkpoint_every_steps"
        )
    from synergy_job.loop.training import Training  # noqa: PLC0415 - no TLS and no threads outside a cluster

    return Training(place, loader, rules, sizes).batches()
