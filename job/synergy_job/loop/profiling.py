"""A profile run: train without end, and report each finished step to the harness."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from synergy_job.cache.cache import cached_bytes
from synergy_job.loop.data import epoch_steps, epochs
from synergy_job.loop.pauses import Pauses
from synergy_job.loop.script import Script, listening

if TYPE_CHECKING:
    from synergy_job.environment import Profile
    from synergy_job.loop.data import Loader
    from synergy_job.loop.tensors import TensorSizes

T = TypeVar("T")


class StepSocket:
    """Sends `{"step": steps done, "at": CLOCK_MONOTONIC seconds, "paused": seconds of pauses}` to the harness, with
    `"cache_bytes"` if the job reads its data through a cache, `"largest_tensor_bytes"` and `"model_bytes"` if it has
    reported its model, and `"epoch_steps"` once that is known.

    Each message has the number of steps done and the time at which the last of them ended. A lost message or a late
    reader does not spoil the measurement; a full queue is therefore no reason to wait.
    """

    def __init__(self, name: str, sizes: TensorSizes | None = None) -> None:
        """`name` is a path, or `@name` for a socket in Linux's abstract namespace, which needs no writable folder."""
        self._of_model = (
            {} if sizes is None else {"largest_tensor_bytes": sizes.largest_bytes, "model_bytes": sizes.model_bytes}
        )
        self.epoch_steps: int | None = None
        self.pauses = Pauses()
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, step: int) -> None:
        """Say that `step` steps are done. Ends the process when the harness is gone: nothing else would end it."""
        cached = cached_bytes()
        of_cache = {} if cached is None else {"cache_bytes": cached}
        of_data = {} if self.epoch_steps is None else {"epoch_steps": self.epoch_steps}
        now = time.monotonic()
        moment = {"step": step, "at": now, "paused": self.pauses.seconds(now)}
        message = json.dumps({**moment, **of_cache, **self._of_model, **of_data}).encode()
        try:
            self._socket.sendto(message, self._address)
        except BlockingIOError:
            pass
        except (ConnectionError, FileNotFoundError) as error:
            raise SystemExit("synergy_job: the profile harness is gone") from error

    def learned(self, steps: int) -> bool:
        """An epoch of a loader without `len()` is over; the batches go on."""
        self.epoch_steps = steps
        return False

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def profile_steps(profile: Profile, loader: Loader[T], sizes: TensorSizes | None = None) -> Generator[T, None, None]:
    """Batches without end from the beginning of the data, also after `finish`. Of several processes only rank 0 speaks
    to the harness."""
    with closing(StepSocket(profile.socket, sizes)) as harness, closing(epochs(loader, 0, harness.learned)) as stream:
        harness.epoch_steps = epoch_steps(loader)
        if profile.rank == 0:
            harness.send(0)
        with listening(Script(lambda _: None, harness.pauses)):
            for step, batch in enumerate(stream, start=1):
                yield batch
                if profile.rank == 0:
                    harness.send(step)
