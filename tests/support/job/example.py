"""The example scripts as workers of a job on this machine."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Example:
    """Starts an example as a worker of a job; its termination message goes to a file of its rank."""

    folder: Path
    environ: dict[str, str]
    python: str = sys.executable
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, script: str, *options: str, **environ: str) -> subprocess.Popen[str]:
        own = {"SYNERGY_TERMINATION_LOG": str(self.folder / f"termination-{environ.get('RANK', '0')}")}
        process = subprocess.Popen(
            [self.python, str(EXAMPLES / script), "--checkpoint", str(self.folder / "checkpoints"), *options],
            env={**os.environ, **self.environ, **own, **environ},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self.running.append(process)
        return process

    def run(self, script: str, *options: str, **environ: str) -> tuple[int, str]:
        return self.end(self.start(script, *options, **environ))

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        output, _ = process.communicate(timeout=150)
        return process.returncode, output
