"""The process that forecasts a round of offers: the side that forecasts.

It reads a question from stdin: first all but the clusters, then one cluster after the other. On stdout it tells each
cluster that it begins to read, each forecast that it begins and each answer at once. If it dies or takes too long, its
answers so far count, and the cluster that it told last is known.
"""

import logging
import os
import pickle
import resource
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from synergy_clusters.forecast.prospects import Placed, Question, place

SECONDS: Final = 30.0
"""After so long no further job of a round is begun; the next round has it."""
LENGTH: Final = struct.Struct("!I")
"""Before each message, how many bytes it has."""
Message = tuple[str, str | Placed]
"""A job, and the cluster in which its forecast begins, or the answer. The job is empty where a cluster is read."""
_NICENESS: Final = 10
_MOST_BYTES: Final = 1 << 30
"""A forecast that needs more memory fails."""


def frames(question: Question) -> Iterator[bytes]:
    """The question as it is written to stdin, each part with its length before it."""
    yield _framed((tuple(question.clusters), question.jobs, question.now))
    for cluster in question.clusters.values():
        yield _framed(cluster)


def _framed(part: object) -> bytes:
    written = pickle.dumps(part)
    return LENGTH.pack(len(written)) + written


def main() -> None:
    """Answer the question on stdin."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    question = _question()
    end = time.monotonic() + SECONDS
    for job, placed in place(question, lambda: time.monotonic() < end, begins=_tell, failed=_log):
        _tell(job, placed)


def _question() -> Question:
    names, jobs, now = _part()
    clusters = {}
    for name in names:
        _tell("", name)
        clusters[name] = _part()
    return Question(clusters, jobs, now)


def _part() -> Any:
    (length,) = LENGTH.unpack(sys.stdin.buffer.read(LENGTH.size))
    return pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301 - from the process that started this one


def _tell(job: str, what: str | Placed) -> None:
    message: Message = job, what
    sys.stdout.buffer.write(_framed(message))
    sys.stdout.buffer.flush()


def _log(job: str, cluster: str) -> None:
    logging.exception("the forecast of %s in cluster %s failed", job, cluster)


if __name__ == "__main__":
    main()
