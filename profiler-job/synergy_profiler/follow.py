"""`python3 -m synergy_profiler.follow --throughput-regex REGEX -- COMMAND ARGS...`

Trains: runs the command as it is, reads its steps from what it prints, and reports them to the extender in place of the
library. It never asks the command to leave: SIGTERM, which it passes on, does that. Ends with the command's exit code.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING

from synergy_job.departure import Departure
from synergy_job.environment import ConfigError, Worker, read_environment
from synergy_job.lease.client import LeaseClient, Report
from synergy_job.lease.reporter import Reporter
from synergy_job.loop.rate import RateWindow
from synergy_job.loop.termination import write_termination_message
from synergy_profiler.child import Child
from synergy_profiler.printed import PrintedSteps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from synergy_profiler.measurement import Sample

POLL_S = 0.2
EXIT_NOT_RUN = 127


class Follower:
    """What is known of a command that trains."""

    def __init__(self, worker: Worker, printed: PrintedSteps) -> None:
        """Raises `ConfigError` if the job has no number of steps."""
        if worker.steps is None:
            raise ConfigError("SYNERGY_STEPS is not set: spec.throughput needs spec.steps")
        self._steps = worker.steps
        self._worker = worker
        self._printed = printed
        self._rate = RateWindow()
        self._told: float | None = None
        self._step = 0
        self._child: Child | None = None
        self._stopped = 0
        self._warned = ""

    def run(self, command: Sequence[str]) -> int:
        """Run the command and follow it to its end; its exit code. Raises `OSError` when it cannot be run."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        self._child = child = Child(command, {**os.environ, "PYTHONUNBUFFERED": "1"}, self._printed)
        if self._stopped:  # while it was being started
            child.signal(self._stopped)
        reporter = self._make_reporter()
        while (code := child.exit_code()) is None:
            self._take(self._printed.next(POLL_S))
            self._warn()
        child.drain()
        while (sample := self._printed.next(0)) is not None:
            self._take(sample)
        self._warn()
        finished = code == 0 and not self._stopped
        if finished:
            self._step = self._steps
        self._say("finished" if finished else "stopped")
        if reporter is not None:
            reporter.finish() if finished else reporter.stop()
        return code

    def progress(self, done: bool) -> Report:
        """What a lease report says."""
        rate = self._rate.steps_per_second(time.monotonic()) if self._told is None else self._told
        return Report(self._step, 0, round(rate, 4), self._worker.gpu_uuids, done)

    def _warn(self) -> None:
        """Once, where the output cannot be searched."""
        if self._printed.problem != self._warned:
            self._warned = self._printed.problem
            sys.stderr.write(f"synergy_profiler.follow: {self._warned}; its steps are not read, training goes on\n")

    def _take(self, sample: Sample | None) -> None:
        if sample is None or sample.step < self._step:
            return
        self._step = min(sample.step, self._steps)
        self._told = sample.speed
        self._rate.add(sample.step, sample.at)

    def _make_reporter(self) -> Reporter | None:
        if self._worker.lease is None:
            return None
        reporter = Reporter(LeaseClient(self._worker.lease), Departure(), self.progress)
        reporter.start()
        return reporter

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._stopped = number
        if self._child is not None:
            self._child.signal(number)

    def _say(self, outcome: str) -> None:
        """Leave the step in the termination message, unless the command has written one itself."""
        path = self._worker.termination_log
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            write_termination_message(path, outcome, self._step, 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 127 with one line on stderr if it cannot be run."""
    parser = argparse.ArgumentParser(prog="synergy_profiler.follow", description="Report the steps a command prints.")
    parser.add_argument("--throughput-regex", required=True, metavar="REGEX")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the command and its arguments")
    given = parser.parse_args(argv)
    try:
        worker = read_environment(os.environ)
        if not isinstance(worker, Worker):
            raise ConfigError("SYNERGY_JOB is not set: this runs in the workers of a TrainingJob")
        return Follower(worker, PrintedSteps(given.throughput_regex)).run(given.command)
    except (OSError, ValueError, re.error) as error:
        sys.stderr.write(f"synergy_profiler.follow: {error}\n")
        return EXIT_NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
