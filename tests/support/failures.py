"""What failed in a run of many suites, told together at its end: `make test` prints the file after all else.

Of a long run only the last lines may be kept, and the suites run side by side.
"""

import os
from pathlib import Path

import pytest

LONGEST = 200


def note(line: str) -> None:
    """Add a line to the file that the variable FAILURES names, if there is one."""
    if named := os.environ.get("FAILURES"):
        with Path(named).open("a") as file:
            file.write(f"{line}\n")


def _in_worker() -> bool:
    """Whether this process runs tests for another one, which hears of each failure too."""
    return "PYTEST_XDIST_WORKER" in os.environ


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test, or a fixture of it, that failed."""
    if report.failed and not _in_worker():
        _noted(report, report.when or "call")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that could not be read."""
    if report.failed and not _in_worker():
        _noted(report, "collection")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
    """A run that broke off."""
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not _in_worker():
        note(f"pytest {' '.join(session.config.args)}: ended with {int(exitstatus)}")


def _noted(report: pytest.TestReport | pytest.CollectReport, when: str) -> None:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = " ".join(str(crash.message if crash is not None else report.longrepr or "").split())
    # a traceback has what matters at its end
    note(f"{report.nodeid} ({when}): {text[:LONGEST] if crash is not None else text[-LONGEST:]}")
