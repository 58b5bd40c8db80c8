"""Sharded states: each rank saves its part of the tensors, and any number of ranks takes them over.

The checkpoint is a folder. A save makes a folder in it, `step-STEP.EPOCH.RUN`:

    .metadata, __0_0.distcp, ...   the tensors, by `torch.distributed.checkpoint`
    rank-0.pt, rank-1.pt, ...      random numbers of each rank; of rank 0 also the parts that are no tensors

The record `synergy_job.pkl` names the save that counts, and the one before it. It is written last, by rank 0.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)

from synergy_job.checkpoints.checkpoint import CheckpointError
from synergy_job.checkpoints.saved import Saved
from synergy_job.torch.order import Order
from synergy_job.torch.randomness import random_states
from synergy_job.torch.shard_files import Reader, Writer
from synergy_job.torch.together import Together, processes, rank
from synergy_job.torch.training_state import FORMAT, Part, State, loaded, same_parts

log = logging.getLogger("synergy_job")


class ShardedState(State):
    """A state whose tensors lie on many ranks. `save` and `load` are collective: all ranks call them."""

    def __init__(self, path: str, parts: dict[str, Part], order: Order) -> None:
        super().__init__(path, parts, order)
        self._saved = Saved(path)
        self._together = Together()

    def save(self, step: int) -> None:
        """Write the checkpoint of `step`: each rank its shards and its random numbers. It counts once all have written.

        Raises on all ranks what failed on one.
        """
        together = self._together
        name = together.from_first(lambda: self._saved.begin(step))
        folder = os.path.join(self.path, name)
        together.each(lambda: self._write_own(folder, step))
        writer = Writer(folder)
        dcp.save(self._tensors(), storage_writer=writer, process_group=together.group)
        together.each(writer.failed)
        together.from_first(lambda: self._saved.record(step, name))

    def load(self) -> int | None:
        """Restore the newest checkpoint, whatever the number of ranks that saved it; its step, or None where there is
        none. If its files are damaged, the one before it is restored, with a warning in the log.

        Raises CheckpointError where none can be read, or for a script with other parts.
        """
        names = self._together.from_first(self._names)
        for number, name in enumerate(names, start=1):
            try:
                return self._restore(os.path.join(self.path, name))
            except _DamagedError as error:
                if number == len(names):
                    raise CheckpointError(f"{error}; no checkpoint before it can be read either") from error
                log.warning("%s; the checkpoint before it is tried", error)
        return None

    def _write_own(self, folder: str, step: int) -> None:
        os.makedirs(folder, exist_ok=True)
        content = {"format": FORMAT, "step": step, "random": random_states(), "order": self._order.state()}
        if rank() == 0:
            content["names"], content["processes"] = sorted(self._parts), processes()
            content["parts"] = {name: part.state_dict() for name, part in self._parts.items() if not _sharded(part)}
        made = io.BytesIO()
        torch.save(content, made)
        with open(_own_file(folder, rank()), "wb") as file:  # PyTorch hides why it cannot write
            file.write(made.getbuffer())
            file.flush()
            os.fsync(file.fileno())

    def _names(self) -> list[str]:
        """The saves that are there, the newest first."""
        if os.path.isfile(self.path):
            raise CheckpointError(f"{self.path} is a file: a sharded state needs a path of its own, for a folder")
        newest = self._saved.newest()
        return [] if newest is None else [name for name in (newest["name"], newest["before"]) if name is not None]

    def _restore(self, folder: str) -> int:
        together = self._together
        reader = Reader(folder)
        with _as_damaged(folder):
            first, own = together.each(lambda: self._read_own(folder))
            together.each(reader.read_metadata)
        together.each(lambda: same_parts(folder, first["names"], self._parts))
        tensors = self._tensors()
        dcp.load(tensors, storage_reader=reader, process_group=together.group)
        with _as_damaged(folder):
            together.each(reader.failed)
        for name, part in self._parts.items():
            if isinstance(part, torch.optim.Optimizer):
                set_optimizer_state_dict(self._parts["model"], part, optim_state_dict=tensors[name])
            elif isinstance(part, torch.nn.Module):
                set_model_state_dict(part, tensors[name])
            else:
                part.load_state_dict(first["parts"][name])
        self._restore_own(own, first, f"{first['processes']} processes saved it, not {processes()}")
        return int(first["step"])

    def _read_own(self, folder: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """What rank 0 saved, and what this rank saved; None if other ranks saved than there are now."""
        first: dict[str, Any] = loaded(_own_file(folder, 0))
        if first["processes"] != processes():
            return first, None
        return first, first if rank() == 0 else loaded(_own_file(folder, rank()))

    def _tensors(self) -> dict[str, Any]:
        """The parts whose tensors may lie on many ranks, by names that do not depend on the ranks."""
        found = {}
        for name, part in self._parts.items():
            if isinstance(part, torch.optim.Optimizer):
                found[name] = get_optimizer_state_dict(self._parts["model"], part)
            elif isinstance(part, torch.nn.Module):
                found[name] = get_model_state_dict(part)
        return found


class _DamagedError(CheckpointError):
    """Files of a save are missing or broken."""


@contextmanager
def _as_damaged(folder: str) -> Iterator[None]:
    try:
        yield
    except CheckpointError as error:
        raise _DamagedError(f"the checkpoint {folder} is damaged ({error})") from error


def _sharded(part: Any) -> bool:
    return isinstance(part, (torch.nn.Module, torch.optim.Optimizer))


def _own_file(folder: str, number: int) -> str:
    return os.path.join(folder, f"rank-{number}.pt")
