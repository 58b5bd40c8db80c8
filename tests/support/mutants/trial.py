"""One run of chosen tests in a process of its own, with or without a mutant."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from types import ModuleType

import hypothesis
import pytest

from support.mutants.changes import Mutant
from support.mutants.packages import ROOT

PRELOADED = (
    "numpy", "scipy.optimize", "scipy.sparse", "cvxpy", "kubernetes", "aiohttp", "yaml",
    "fastapi", "httpx", "kopf", "prometheus_client", "uvicorn",
)  # fmt: skip
"""Packages that each run would import again; none of them imports the project."""

WAITING = 20.0
"""How many times as long as its CPU time a run may take on a busy machine. It is stuck after that."""


class Outcome(IntEnum):
    """How a run ended; the numbers of the first two are pytest's exit codes."""

    PASSED = 0
    FAILED = 1
    INVALID = 90
    """The mutant cannot be imported."""
    TIMED_OUT = 91


def preload() -> None:
    """Import what all runs need before the first is forked."""
    for name in PRELOADED:
        importlib.import_module(name)
    # no shrinking: that a test fails is enough
    hypothesis.settings.register_profile(
        "mutants",
        max_examples=40,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@dataclass
class Trial:
    """A run under way."""

    pid: int
    ends_s: float
    """When it counts as stuck, by the monotonic clock."""
    pipe: int

    def outcome(self) -> tuple[Outcome, str] | None:
        """How the run ended and the test that failed; None while it goes on."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done and time.monotonic() < self.ends_s:
            return None
        if not done:
            os.killpg(self.pid, 9)
            os.waitpid(self.pid, 0)
        with os.fdopen(self.pipe) as pipe:
            failed = pipe.read() if done else ""
        if not done:
            return Outcome.TIMED_OUT, ""
        code = os.waitstatus_to_exitcode(status)
        if code == -signal.SIGXCPU:
            return Outcome.TIMED_OUT, ""
        return (Outcome(code) if code in (Outcome.PASSED, Outcome.INVALID) else Outcome.FAILED), failed


def start(tests: Sequence[str], limit_s: float, mutant: Mutant | None, plugins: Sequence[object] = ()) -> Trial:
    """Fork a run of the tests with these node ids, in this order, up to the first that fails.

    It may use `limit_s` seconds of CPU time, not of time: a test does not fail because the machine is busy.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(limit_s), ceil(limit_s) + 1))
        try:
            code = _run(tests, mutant, [*plugins, _Chosen(tests, writing)])
        finally:
            os._exit(code)
    os.close(writing)
    return Trial(pid, time.monotonic() + WAITING * limit_s, reading)


def in_a_fork(act: Callable[[], int]) -> int:
    """The exit code of a function that runs in a process of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def pytest_main(arguments: Sequence[str], plugins: Sequence[object]) -> int:
    """pytest as every run here has it: the same examples of each property every time."""
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist", "--hypothesis-profile=mutants"]
    options += ["-o", "timeout=0"]  # a run has a limit of its own
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # some plugins are imported already
    return int(pytest.main([*options, *arguments], plugins=plugins))


def _run(tests: Sequence[str], mutant: Mutant | None, plugins: Sequence[object]) -> int:
    os.setpgid(0, 0)
    os.chdir(ROOT)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(quiet, stream)
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
        try:
            importlib.import_module(mutant.module)
        except Exception:  # noqa: BLE001 - any error at all
            return Outcome.INVALID
    return pytest_main(sorted({test.split("::")[0] for test in tests}), plugins)


class _Chosen:
    """Runs the chosen tests only, in their order, and writes the first that fails to a pipe."""

    def __init__(self, tests: Sequence[str], pipe: int) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self._pipe = pipe

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place), key=lambda item: self._place[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._pipe, report.nodeid.encode())


class _Finder(importlib.abc.MetaPathFinder):
    """Gives the mutant in place of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        file = ROOT / self._mutant.path
        inside = [str(file.parent)] if file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_Loader(fullname, str(file), self._mutant), submodule_search_locations=inside
        )


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutant) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        """The mutant, compiled; no compiled file is read or written."""
        return compile(self._mutant.source(), self.path, "exec", dont_inherit=True)
