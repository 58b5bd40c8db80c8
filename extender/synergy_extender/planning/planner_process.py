"""The planner in a process of its own: the side that plans.

It reads a length and a pickled (snapshot, config) from stdin, answers the same way on stdout, and ends when stdin does.
"""

import pickle
import struct
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO

from synergy_core import model as core
from synergy_core.plan import plan

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Planned:
    """A plan and how many seconds `plan()` took."""

    plan: core.Plan
    seconds: float


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more. An error of the planner is answered as its text."""
    while len(header := requests.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(header)
        answer = pickle.dumps(_answer(requests.read(length)), protocol=5)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _answer(request: bytes) -> Planned | str:
    try:
        snapshot, config = pickle.loads(request)  # noqa: S301 - from our own parent
        started = time.perf_counter()
        return Planned(plan(snapshot, config), time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - a planner's error must not end the process, it goes to the log
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Serve the parent. Under -m this module goes by another name; answers must carry types that the parent finds."""
    from synergy_extender.planning import planner_process  # noqa: PLC0415, PLW0406

    planner_process.serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
