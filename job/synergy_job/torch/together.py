"""What all processes of a run do, or none: an error of one is an error of all, so that nobody waits for it."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import torch.distributed

from synergy_job.checkpoints.checkpoint import CheckpointError
from synergy_job.checkpoints.fence import FencedError

T = TypeVar("T")


def rank() -> int:
    """The rank of this process; 0 if it is alone."""
    return int(torch.distributed.get_rank()) if _distributed() else 0


def processes() -> int:
    """How many processes train together."""
    return int(torch.distributed.get_world_size()) if _distributed() else 1


class Together:
    """The processes of a run, with a gloo group of their own: what they say here meets no collective of training."""

    @cached_property
    def group(self) -> Any:
        """The group; None if this process is alone. Its first use is a collective operation."""
        if processes() == 1:
            return None
        atexit.register(self._end)
        return torch.distributed.new_group(backend="gloo")

    def _end(self) -> None:
        """End the threads of the group before the interpreter ends.

        One that lets go of a tensor after that aborts the process ("terminate called without an active exception"), and
        a worker that has done its work counts as failed. Nothing waits for the other processes.
        """
        group = self.__dict__.pop("group", None)
        if group is not None and _distributed():
            torch.distributed.destroy_process_group(group)

    def from_first(self, work: Callable[[], T]) -> T:
        """What `work` returns on rank 0. Its error there is raised on all ranks."""
        told: list[Any] = [None, None]
        failure = None
        if rank() == 0:
            try:
                told[0] = work()
            except Exception as error:  # noqa: BLE001 - told to all, raised below
                failure, told[1] = error, _said(error)
        if self.group is not None:
            torch.distributed.broadcast_object_list(told, src=0, group=self.group)
        if told[1] is not None:
            raise _raised(0, told[1]) from failure
        result: T = told[0]
        return result

    def gathered(self, value: T) -> list[T]:
        """What each rank gives, in order of rank."""
        values = [value] * processes()
        if self.group is not None:
            torch.distributed.all_gather_object(values, value, group=self.group)
        return values

    def each(self, work: Callable[[], T]) -> T:
        """What `work` returns on this rank. The error of one rank is raised on all of them."""
        result, failure = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - told to all, raised below
            failure = error
        for number, one in enumerate(self.gathered(None if failure is None else _said(failure))):
            if one is not None:
                raise _raised(number, one) from failure
        return result  # type: ignore[return-value]


def _said(error: Exception) -> tuple[bool, str]:
    told = isinstance(error, (FencedError, CheckpointError))
    return isinstance(error, FencedError), str(error) if told else f"{type(error).__name__}: {error}"


def _raised(number: int, said: tuple[bool, str]) -> Exception:
    fenced, text = said
    told = f"rank {number}: {text}" if processes() > 1 else text
    return FencedError(told) if fenced else CheckpointError(told)


def _distributed() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())
