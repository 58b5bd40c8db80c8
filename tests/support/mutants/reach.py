"""Which test runs which line of a component, measured once for each test file."""

import hashlib
import json
import os
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from support.mutants.changes import Mutant
from support.mutants.packages import ROOT, Component
from support.mutants.trial import in_a_fork, pytest_main


@dataclass(frozen=True)
class Reach:
    """The tests that run a line, and how long each of them takes."""

    by_line: dict[tuple[str, int], list[str]]
    seconds: dict[str, float]
    digests: dict[str, str]
    """Changes with a test file."""

    def tests(self, mutant: Mutant) -> list[str]:
        """The tests that can notice the mutant, the quickest first."""
        if not mutant.lines:  # runs with the import
            found = set(self.seconds)
        else:
            found = {test for line in mutant.lines for test in self.by_line.get((mutant.path, line), ())}
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def digest(self, tests: list[str]) -> str:
        """Changes with the files of these tests."""
        files = sorted({test.split("::")[0] for test in tests})
        return hashlib.sha256("".join(self.digests[file] for file in files).encode()).hexdigest()[:16]


def measured(component: Component, store: Path, tests: Path) -> Reach:
    """The reach of the unit tests of a component that are in the folder `tests`.

    Files that have changed since the last time are measured again.
    """
    kept = json.loads(store.read_text()) if store.exists() else {}
    code = _digest(*component.files())
    files = {str(file.relative_to(ROOT)): _digest(file) for file in sorted(component.tests.rglob("test_*.py"))}
    kept = {name: entry for name, entry in kept.items() if files.get(name) == entry["digest"] and entry["code"] == code}
    wanted = [name for name in files if (ROOT / name).is_relative_to(tests)]
    missing = [name for name in wanted if name not in kept]
    if missing:
        print(f"which lines {len(missing)} test files reach ...", flush=True)
    for name in missing:
        with tempfile.NamedTemporaryFile() as result:
            into = Path(result.name)
            if in_a_fork(lambda name=name, into=into: _measure(component, name, into)) != 0:  # type: ignore[misc]
                raise SystemExit(f"{name} fails without any mutant")
            kept[name] = {"digest": files[name], "code": code, **json.loads(into.read_text())}
        _write(store, kept)
    by_line: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    seconds: dict[str, float] = {}
    for entry in (kept[name] for name in wanted):
        names = list(entry["seconds"])
        seconds |= entry["seconds"]
        for path, lines in entry["lines"].items():
            for line, reaching in lines.items():
                by_line[path, int(line)] += [names[test] for test in reaching]
    return Reach(dict(by_line), seconds, files)


def _write(store: Path, kept: object) -> None:
    store.parent.mkdir(exist_ok=True)
    new = store.with_suffix(".new")
    new.write_text(json.dumps(kept))
    new.replace(store)


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _measure(component: Component, name: str, into: Path) -> int:
    """Run a test file in this process and write which of its tests ran which lines."""
    os.chdir(ROOT)
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    watch = coverage.Coverage(data_file=None, config_file=False, include=[f"{component.code}/*"])
    recorder = _Recorder(watch)
    watch.start()
    code = pytest_main([name], [recorder])
    watch.stop()
    data = watch.get_data()
    place = {test: number for number, test in enumerate(recorder.seconds)}
    lines = {
        str(Path(file).relative_to(ROOT)): {
            line: sorted({place[test] for test in tests if test in place})
            for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
    }
    into.write_text(json.dumps({"seconds": recorder.seconds, "lines": lines}))
    return 0 if code == 5 else code  # a file with no test to run


class _Recorder:
    """Notes under which test lines run, and how long each test takes."""

    def __init__(self, watch: coverage.Coverage) -> None:
        self._watch = watch
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._watch.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = round(report.duration, 4)
