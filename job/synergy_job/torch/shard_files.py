"""Files of shards whose errors `torch.distributed.checkpoint` need not pass on to other ranks.

It does so by pickles of tracebacks, which PyTorch 2.6 cannot make under Python 3.13. The ranks without the error then
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed.checkpoint as dcp


class _Failing:
    """What went wrong in this process, to be told after the collective operation."""

    _failure: Exception | None = None

    def failed(self) -> None:
        """Raises the error of this process's files, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _noted(self, work: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - told by `failed`
            self._failure = error
            nothing: Any = torch.futures.Future()
            nothing.set_result(otherwise)
            return nothing


class Writer(_Failing, dcp.FileSystemWriter):  # type: ignore[misc]
    """Writes the shards of this process."""

    def write_data(self, plan: Any, planner: Any) -> Any:
        """A future of what was written: nothing, if that fails."""
        return self._noted(lambda: super(Writer, self).write_data(plan, planner), [])


class Reader(_Failing, dcp.FileSystemReader):  # type: ignore[misc]
    """Reads what this process needs of the shards."""

    def read_data(self, plan: Any, planner: Any) -> Any:
        """A future that is done when everything has been read, or could not be."""
        return self._noted(lambda: super(Reader, self).read_data(plan, planner), None)
