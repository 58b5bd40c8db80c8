"""The socket where the library in the child process reports finished steps."""

from __future__ import annotations

import json
import secrets
import socket
import time

from synergy_profiler.measurement import Sample

_LONGEST_MESSAGE = 4096
_MOST_BYTES = 1 << 50
_MOST_STEPS = 1 << 40


class StepReceiver:
    """A datagram socket in Linux's abstract namespace: it needs no writable folder and vanishes with the process.

    Its name is random: no other process on a shared network namespace uses it by chance.
    """

    how_to_be_seen = (
        "the training script must take its batches from synergy_job.iterate(...), or spec.throughput.regex say how it "
        "prints its steps"
    )

    def __init__(self) -> None:
        self._token = f"kube-synergy-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self._token)
        self.problem = ""
        """Why steps cannot be seen at all: never, here."""
        self.unreadable = 0
        """Messages so far that made no sense."""

    @property
    def address(self) -> str:
        """The value of SYNERGY_PROFILE_SOCKET."""
        return "@" + self._token

    def next(self, patience_s: float) -> Sample | None:
        """The next message; None when none has come for `patience_s` seconds or the one that came made no sense."""
        self._socket.settimeout(patience_s)
        try:
            message = self._socket.recv(_LONGEST_MESSAGE)
        except socket.timeout:  # noqa: UP041 - TimeoutError itself from Python 3.10 on only
            return None
        sample = _parse(message)
        if sample is None:
            self.unreadable += 1
        return sample

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _parse(message: bytes) -> Sample | None:
    try:
        fields = json.loads(message)
        step, at, cached = fields["step"], fields["at"], fields.get("cache_bytes")
        largest, model = fields.get("largest_tensor_bytes"), fields.get("model_bytes")
        paused, epoch = fields.get("paused", 0.0), fields.get("epoch_steps")
    except (ValueError, KeyError, TypeError):
        return None
    if type(step) is not int or step < 0 or type(at) is not float or not 0 <= at <= time.monotonic():
        return None
    if type(paused) is not float or not 0 <= paused <= at:
        return None
    if cached is not None and (type(cached) is not int or cached < 0):
        return None
    # sizes are a hint for placement: a step counts also with wrong ones
    known = type(largest) is int and type(model) is int and 0 < largest <= model <= _MOST_BYTES
    return Sample(
        step,
        at,
        paused=paused,
        cache_bytes=cached,
        tensors=(largest, model) if known else None,
        epoch_steps=epoch if type(epoch) is int and 0 < epoch <= _MOST_STEPS else None,
    )
