"""Jobs whose loop is owned by a framework, run by Debian's Python with Debian's PyTorch."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.job import debian_torch
from support.job.lease_server import LeaseServer
from support.job.process import free_port, kill_what_is_left
from support.needed import lacks
from synergy_operator.pods.gang import rendezvous

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
        (code,) = self._ended([self._start(options, {"SYNERGY_RUN": str(run), **environ})])
        return code

    def run_of_two(self, *options: str, run: int = 1) -> list[int]:
        """One run of two processes of a pod: their exit codes."""
        return self._of_two([{"RANK": one, "LOCAL_RANK": one, "WORLD_SIZE": "2"} for one in "01"], options, run)

    def run_of_two_pods(self, *options: str) -> list[int]:
        """One run of two pods of one GPU, as the operator starts them: their exit codes."""
        port = str(free_port())
        environs = [{**rendezvous("localhost", rank, size=2, gpus=1), "MASTER_PORT": port} for rank in (0, 1)]
        return self._of_two(environs, ("nodes=2", *options), run=1)

    def _of_two(self, environs: list[dict[str, str]], options: Sequence[str], run: int) -> list[int]:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "key").write_text("0123456789abcdef" * 4)
        shared = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "SYNERGY_PEER_PORT": str(free_port())}
        shared |= {"SYNERGY_RUN": str(run), "SYNERGY_GANG_KEY_FILE": str(self.folder / "key")}
        return self._ended([self._start(options, {**shared, **environ}) for environ in environs])

    def _start(self, options: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[str]:
        self.folder.mkdir(exist_ok=True)
        return subprocess.Popen(
            [debian_torch.PYTHON, SCRIPT, self.framework, self.folder, *options],
            env={**os.environ, **self.environ, **environ, "SYNERGY_TERMINATION_LOG": str(self.log)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )

    def _ended(self, started: list[subprocess.Popen[str]]) -> list[int]:
        try:
            outputs = [process.communicate(timeout=240)[0] for process in started]
        finally:
            kill_what_is_left(started)
        self.outputs += outputs
        codes = [process.returncode for process in started]
        assert {*codes} <= {0, 75}, "\n".join(outputs)
        return codes

    @property
    def log(self) -> Path:
        return self.folder / "termination"

    @property
    def termination(self) -> Any:
        return json.loads(self.log.read_text())

    @property
    def losses(self) -> list[str]:
        return (self.folder / "losses").read_text().split()

    def steps_of(self, rank: int) -> list[dict[str, Any]]:
        """Samples and loss of each step of a rank."""
        return [json.loads(line) for line in (self.folder / f"steps-{rank}").read_text().splitlines()]

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
