"""The profile harness as a process around scripts that a test writes down."""

import json
import os
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CPU_CONTROLLER = Path("/sys/fs/cgroup/cpu")
ACCOUNTING = Path("/sys/fs/cgroup/cpuacct")
MEMORY = Path("/sys/fs/cgroup/memory")
PERIOD_US = 100_000


class at_most:  # noqa: N801 - reads as pytest.approx does
    """Equal to a rate that is at most `rate`, but for 5 %, and down to a third of it: on a machine that is busy with
    other work a pipeline gets less than its limit, never more."""

    def __init__(self, rate: float) -> None:
        self._rate = rate

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float | int) and self._rate / 3 <= other <= self._rate * 1.05

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self._rate / 3:.3g} to {self._rate * 1.05:.3g}"


@dataclass
class Run:
    """How one run of the harness ended."""

    code: int
    output: str
    result: dict[str, Any]


@dataclass
class Harness:
    """Runs `python3 -m synergy_profiler` on scripts that are written down in the test."""

    folder: Path
    groups: list[Path] = field(default_factory=list)

    def script(self, text: str) -> Path:
        file = self.folder / f"script-{uuid.uuid4().hex}.py"
        file.write_text(textwrap.dedent(text))
        return file

    def command(self, *options: str, of: list[str]) -> list[str]:
        log = ["--termination-log", str(self.folder / "termination-log")]
        # on a machine that is busy with other work a rate may be known badly; who asks for less says so
        known = ["--max-relative-error", "100"]
        return [sys.executable, "-m", "synergy_profiler", *log, *known, *options, "--", *of]

    def run(self, text: str, *options: str, **environ: str) -> Run:
        """Measure a script."""
        return self.run_command([sys.executable, str(self.script(text))], *options, **environ)

    def run_command(self, of: list[str], *options: str, **environ: str) -> Run:
        """Measure a command; in the CPU groups of this test where there are any."""

        def enter_groups() -> None:
            for group in self.groups:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            self.command(*options, of=of),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            env={**os.environ, **environ},
            preexec_fn=enter_groups,
        )
        return Run(done.returncode, done.stdout, json.loads((self.folder / "termination-log").read_text()))


@contextmanager
def cgroups(harness: Harness, *controllers: Path) -> Iterator[list[Path]]:
    """Cgroups of their own for what the harness starts from then on, one under each controller.

    Skips the test where this machine does not let it make a cgroup of version 1.
    """
    name = f"kube-synergy-test-{uuid.uuid4().hex[:8]}"
    made = [controller / name for controller in controllers]
    try:
        for group in made:
            group.mkdir()
    except OSError as error:
        pytest.skip(f"no right to make a cgroup of version 1 here: {error}")
    harness.groups.extend(made)
    yield made
    for group in made:
        group.rmdir()


@contextmanager
def cpu_groups(harness: Harness) -> Iterator[Callable[[int], None]]:
    """A function that puts what the harness starts from then on under a limit in milli-CPU, as the kubelet does."""
    with cgroups(harness, CPU_CONTROLLER, ACCOUNTING) as (quota, _):

        def limit(millis: int) -> None:
            (quota / "cpu.shares").write_text("200000")  # before whatever else this machine is doing
            (quota / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (quota / "cpu.cfs_quota_us").write_text(str(millis * PERIOD_US // 1000))

        yield limit
