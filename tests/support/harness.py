"""The profile harness as a process around scripts that a test writes down."""

import json
import os
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
        return [sys.executable, "-m", "synergy_profiler", *log, *options, "--", *of]

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
