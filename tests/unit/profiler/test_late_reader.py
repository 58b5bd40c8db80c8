"""A harness that is late reads all that the command told before it ended."""

import json
import socket
from types import SimpleNamespace
from typing import cast

from synergy_profiler.child import Child
from synergy_profiler.harness import _Watch
from synergy_profiler.options import Options
from synergy_profiler.steps import StepReceiver


def test_what_makes_no_sense_is_not_taken_for_the_end_of_the_messages() -> None:
    receiver = StepReceiver()
    ended = cast("Child", SimpleNamespace(exit_code=lambda: 0))
    watch = _Watch(ended, receiver, Options(warmup_steps=1, steps=3, min_seconds=0.0))
    messages = [b"nonsense", *(json.dumps({"step": step, "at": 1.0 + step}).encode() for step in range(1, 6))]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as command:
        for message in messages:
            command.sendto(message, "\0" + receiver.address[1:])
    try:
        assert watch.until_measured() is None
        assert receiver.unreadable == 1
    finally:
        receiver.close()
