"""Everything that a resumed run of a PyTorch script needs, saved to and restored from one checkpoint."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import torch

import synergy_job
from synergy_job.checkpoints.checkpoint import CheckpointError, atomic_file, checkpoint_files, newest_checkpoint
from synergy_job.torch.loader import resumable
from synergy_job.torch.order import Order
from synergy_job.torch.randomness import mixed, random_states, restore_random_states, seed
from synergy_job.torch.together import processes, rank


class Part(Protocol):
    """A module, an optimizer, a scheduler, a scaler, or anything else with `state_dict` and `load_state_dict`."""

    def state_dict(self) -> Any:
        """All that changes while it trains."""

    def load_state_dict(self, state: Any) -> Any:
        """Take over what `state_dict` returned."""


log = logging.getLogger("synergy_job")

FORMAT = 1


def state(
    path: str | os.PathLike[str],
    *,
    model: Part,
    optimizer: Part | None = None,
    scheduler: Part | None = None,
    scaler: Part | None = None,
    sampler: Part | None = None,
    sharded: bool = False,
    **others: Part | None,
) -> State:
    """The state of a training script, kept in the checkpoint at `path`.

    Arguments:
        path: the checkpoint's file, on a volume that outlives the pod; its folder if it is `sharded`.
        model: the module that is trained. Of a `DistributedDataParallel` the module in it is saved.
        optimizer, scheduler, scaler: the optimizer, the learning rate scheduler, and the `GradScaler`, where there are.
        sampler: a sampler of the loader that has `state_dict` and `load_state_dict`. Other samplers need not be given:
            their shuffle is made to follow from the seed and the epoch.
        sharded: each rank saves its part of the tensors (`torch.distributed.checkpoint`, PyTorch 2.2 or newer), as FSDP
            and tensor parallelism spread them. Another number of ranks can go on from it.
        others: whatever else changes as the script trains, each with a name of its own, such as a moving average.

    Raises ValueError for a part without `state_dict` and `load_state_dict`, and for `sharded` with an older PyTorch.
    """
    named = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, **others}
    parts = {name: part for name, part in named.items() if part is not None}
    if "model" not in parts:
        raise ValueError("model is None: pass the module that is trained")
    for name, part in [*parts.items(), *([] if sampler is None else [("sampler", sampler)])]:
        if not callable(getattr(part, "state_dict", None)) or not callable(getattr(part, "load_state_dict", None)):
            raise ValueError(
                f"{name} is {type(part).__name__}, which has no state_dict() and load_state_dict(): pass a module, an "
                "optimizer or another part that has them"
            )
    made = _sharded_state() if sharded else State
    return made(os.fspath(path), parts, Order(sampler))


class State:
    """The parts of a script, its random numbers, and its place in the data. Made by `state`."""

    def __init__(self, path: str, parts: dict[str, Part], order: Order) -> None:
        self.path = path
        self._parts = parts
        self._order = order

    def iterate(self, loader: Any, **options: Any) -> Iterator[Any]:
        """The batches to train on, as from `synergy_job.iterate`, resumed bit for bit.

        `options` are the other arguments of `synergy_job.iterate`, such as `checkpoint_every_steps`. If several
        processes use `torch.distributed`, each saves its random numbers (`save_on="all"`).
        """
        given = {"save": self.save, "load": self.load, "model": self._parts["model"], **options}
        if processes() > 1:
            given.setdefault("save_on", "all")
        return synergy_job.iterate(self.loader(loader), **given)

    def loader(self, loader: Any) -> Any:
        """`loader` with the order and the random numbers of this state, for `synergy_job.iterate`.

        A `DataLoader` over a map-style data set becomes a `ResumableLoader`. Another loader is returned as it is.
        """
        return resumable(loader, self._order)

    def save(self, step: int) -> None:
        """Write the checkpoint of `step`. Rank 0 writes all parts; another rank writes its random numbers to a file
        beside it."""
        content = {"format": FORMAT, "step": step, "random": random_states(), "order": self._order.state()}
        if rank() == 0:
            content["parts"] = {name: _own(part).state_dict() for name, part in self._parts.items()}
        with atomic_file(self._file(rank())) as file:
            torch.save(content, file)

    def load(self) -> int | None:
        """Restore the newest checkpoint; its step, or None where there is none.

        Raises CheckpointError for a file of another kind, or of a script with other parts.
        """
        newest = newest_checkpoint(self._file(0))
        if newest is None:
            return None
        content = self._read(newest)
        for name, part in self._parts.items():
            _own(part).load_state_dict(content["parts"][name])
        step = int(content["step"])
        own = content if rank() == 0 else self._saved_by_this_rank(step)
        self._restore_own(own, content, "pass save_on='all' to iterate")
        return step

    def _restore_own(self, own: dict[str, Any] | None, of_rank_0: dict[str, Any], why: str) -> None:
        if own is not None:
            self._order.restore(own["order"])
            restore_random_states(own["random"])
            return
        log.warning(
            "rank %d has saved no random numbers with step %d: it takes others, so this run is not bit for bit the one "
            "before; %s",
            rank(),
            of_rank_0["step"],
            why,
        )
        self._order.restore(of_rank_0["order"])
        seed(mixed(self._order.seed, rank(), of_rank_0["step"]))

    def _saved_by_this_rank(self, step: int) -> dict[str, Any] | None:
        for name in checkpoint_files(self._file(rank())):
            content: dict[str, Any] = loaded(name)
            if content["step"] == step:
                return content
        return None

    def _read(self, name: str) -> dict[str, Any]:
        content = loaded(name)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise CheckpointError(
                f"{name} was not written by synergy_job.torch.state: give it a path of its own, or delete the file"
            )
        same_parts(name, content["parts"], self._parts)
        return content

    def _file(self, number: int) -> str:
        return self.path if number == 0 else f"{self.path}.rank-{number}"


def same_parts(name: str, saved: Iterable[str], given: Iterable[str]) -> None:
    """Raises CheckpointError where the checkpoint `name` has other parts than the script."""
    if sorted(saved) != sorted(given):
        raise CheckpointError(
            f"{name} holds {', '.join(sorted(saved))}, but state() was given {', '.join(sorted(given))}: pass the same "
            "parts, or give it another path"
        )


def loaded(name: str) -> Any:
    """The content of the job's own file: reading it runs what its pickle says."""
    return torch.load(name, map_location="cpu", weights_only=False)


def _own(part: Any) -> Part:
    """The module within a wrapper for data-parallel training: a checkpoint fits with and without the wrapper."""
    wrappers = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)
    own: Part = part.module if isinstance(part, wrappers) else part
    return own


def _sharded_state() -> type[State]:
    try:
        from synergy_job.torch.sharded import ShardedState  # noqa: PLC0415 - older versions of PyTorch lack what it needs
    except ImportError as error:
        raise ValueError(
            f"sharded=True needs torch.distributed.checkpoint of PyTorch 2.2 or newer, and this is PyTorch "
            f"{torch.__version__} ({error}): install a newer one, or leave sharded out"
        ) from error
    return ShardedState
