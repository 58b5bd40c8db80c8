"""A profile run: train without end, and report each finished step to the harness."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from synergy_job.cache.cache import cached_bytes
from synergy_job.loop.data import epochs

if TYPE_CHECKING:
    from synergy_job.environment import Profile
    from synergy_job.loop.data import Loader
    from synergy_job.loop.tensors import TensorSizes

T = TypeVar("T")


class StepSocket:
    """Sends `{"step": steps done, "at": CLOCK_MONOTONIC seconds}` to the harness, with `"cache_bytes"` where the job
    reads its data through a cache, and `"largest_tensor_bytes"`, `"model_bytes"` if it has reported its model.

    Each message has the number of steps done and the time at which the last of them ended. A lost message or a late
    reader does not spoil the measurement; a full queue is therefore no reason to wait.
    """

    def __init__(self, name: str, sizes: TensorSizes | None = None) -> None:
        """`name` is a path, or `@name` for a socket in Linux's abstract namespace, which needs no writable folder."""
        self._of_model = (
            {} if sizes is None else {"largest_tensor_bytes": sizes.largest_bytes, "model_bytes": sizes.model_bytes}
        )
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, step: int) -> None:
        """Say that `step` steps are done. Ends the process when the harness is gone: nothing else would end it."""
        cached = cached_bytes()
        of_cache = {} if cached is None else {"cache_bytes": cached}
        message = json.dumps({"step": step, "at": time.monotonic(), **of_cache, **self._of_model}).encode()
        try:
            self._socket.sendto(message, self._address)
        except BlockingIOError:
            pass
        except (ConnectionError, FileNotFoundError) as error:
            raise SystemExit("synergy_job: the profile harness is gone") from error

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def profile_steps(profile: Profile, loader: Loader[T], sizes: TensorSizes | None = None) -> Generator[T, None, None]:
    """Batches without end from the beginning of the data. Of several processes only rank 0 speaks to the harness."""
    with closing(StepSocket(profile.socket, sizes)) as harness, closing(epochs(loader)) as stream:
        if profile.rank == 0:
            harness.send(0)
        for step, batch in enumerate(stream, start=1):
            yield batch
            if profile.rank == 0:
                harness.send(step)
