"""What the harness itself did, so that the observer can tell a broken promise from a fault's own effect."""

import asyncio
import logging
import math
import time
from collections.abc import Mapping
from typing import Any

from synergy_api import names

_LOG = logging.getLogger("chaos")
API_SERVER = "api-server"
CLOCK = "clock"
"""The wall clock of a process under test is off: what it writes of times is, and what it does by them."""
CLOCK_SECONDS = 25.0
"""How long after a clock was set right times that it wrote may be about: two rounds and a pass."""
BY_ITSELF = "its workers "
"""So the reason begins of a run that finished, or left as it was told."""
SLOW_SAVE = "its checkpoint took longer than anybody knew"
"""So a run was hurt that had to leave: not its failure, although its workers were killed."""
Run = tuple[str, int]
"""A job's name and the number of one of its runs."""


class Book:
    """Written by faults and players, read by the observer. Times are Unix seconds."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.leases: dict[Run, float] = {}
        """Until when each run was last told that it holds its place; written by the observer."""
        self._hurt: dict[Run, str] = {}
        self._ended: dict[Run, str] = {}
        self.saves: dict[str, float] = {}
        """Seconds of each job's newest checkpoint, as its status has them; written by the observer."""
        self._back_at: dict[str, float] = {}
        self._cut: set[str] = set()

    def breaks(self, promise: str) -> None:
        """A promise is broken."""
        _LOG.error("BROKEN: %s", promise)
        self.broken.append(f"{time.strftime('%H:%M:%S')} {promise}")

    def task_ended(self, task: asyncio.Task[None]) -> None:
        """An error of the harness itself must not pass for quiet."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("the harness failed", exc_info=error)
            self.broken.append(f"the harness failed: {error!r}")

    def hurt(self, run: Run, how: str) -> None:
        """Workers of the run were killed without a chance to save: what it trained since its checkpoint is lost."""
        self._hurt.setdefault(run, how)
        self._ended.setdefault(run, how)

    def ended(self, run: Run, how: str) -> None:
        """The run ends for a reason that is not its lease: a fault, a user, or itself."""
        self._ended.setdefault(run, how)

    def why_hurt(self, run: Run) -> str:
        """What killed workers of the run, or an empty string."""
        return self._hurt.get(run, "")

    def why_ended(self, run: Run) -> str:
        """Why the run may end before its lease, or an empty string."""
        return self._ended.get(run, "")

    def fails(self, what: str) -> None:
        """The node or component is down from now on."""
        self._back_at[what] = math.inf

    def cuts_off(self, node: str) -> None:
        """Nothing gets to the node or from it from now on; its containers run on."""
        self._cut.add(node)
        self.fails(node)

    def is_back(self, what: str) -> None:
        """It is up again, or can be reached again."""
        self._cut.discard(what)
        self._back_at[what] = time.time()

    def failed_now(self, what: str) -> bool:
        """Whether it is down, and what ran there is gone."""
        return self._back_at.get(what) == math.inf and what not in self._cut

    def cut_now(self, node: str) -> bool:
        """Whether the node cannot be reached, while its containers run."""
        return node in self._cut

    def failed_lately(self, what: str, seconds: float = 60.0) -> bool:
        """Whether it was down within the last seconds."""
        return self._back_at.get(what, -math.inf) > time.time() - seconds


def run_of(pod: Mapping[str, Any]) -> Run:
    """The run that a pod of ours belongs to."""
    labels = pod["metadata"]["labels"]
    return labels[names.LABEL_JOB], int(labels[names.LABEL_RUN])
