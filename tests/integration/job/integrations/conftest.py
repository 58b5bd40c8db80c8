"""Jobs whose loop is owned by a framework, run by Debian's Python with Debian's PyTorch."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.job import debian_torch
from support.job.lease_server import LeaseServer
from support.needed import lacks

FRAMEWORKS = Path(__file__).parents[4] / ".integrations"
SCRIPT = Path(__file__).parent / "training.py"


@pytest.fixture(autouse=True)
def with_frameworks() -> None:
    debian_torch.required()
    if not (FRAMEWORKS / ".done").exists():
        lacks("needs the frameworks: make integrations")


@dataclass
class Trained:
    """The runs of one job in one folder."""

    framework: str
    folder: Path
    environ: dict[str, str]
    outputs: list[str] = field(default_factory=list)

    def run(self, *options: str, run: int = 1, **environ: str) -> int:
        """One run: its exit code."""
        self.folder.mkdir(exist_ok=True)
        done = subprocess.run(
            [debian_torch.PYTHON, SCRIPT, self.framework, self.folder, *options],
            env={
                **os.environ,
                **self.environ,
                "SYNERGY_RUN": str(run),
                **environ,
                "SYNERGY_TERMINATION_LOG": str(self.log),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        self.outputs.append(done.stdout)
        assert done.returncode in (0, 75), done.stdout
        return done.returncode

    @property
    def log(self) -> Path:
        return self.folder / "termination"

    @property
    def termination(self) -> Any:
        return json.loads(self.log.read_text())

    @property
    def losses(self) -> list[str]:
        return (self.folder / "losses").read_text().split()

    @property
    def weights(self) -> str:
        return (self.folder / "weights").read_text()


@dataclass
class Jobs:
    """Makes jobs of a framework."""

    folder: Path
    environ: dict[str, str]

    def of(self, framework: str, name: str = "job") -> Trained:
        return Trained(framework, self.folder / name, self.environ)


@pytest.fixture
def jobs(tmp_path: Path, lease_server: LeaseServer, token_file: Path) -> Jobs:
    environ = {
        **debian_torch.ENVIRON,
        "PYTHONPATH": f"{debian_torch.LIBRARY}:{FRAMEWORKS}",
        "SYNERGY_JOB": "j",
        "SYNERGY_NAMESPACE": "team",
        "SYNERGY_STEPS": "60",
        "SYNERGY_EXTENDER_URL": lease_server.url,
        "SYNERGY_TOKEN_FILE": str(token_file),
        "SYNERGY_CA_CERT": lease_server.ca_cert,
    }
    return Jobs(tmp_path, environ)
