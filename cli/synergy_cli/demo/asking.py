"""What the demo lets a user ask meanwhile: `kubectl synergy`, run as a user would, and the dashboard's address."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

_PLUGIN = Path(sys.executable).parent / "kubectl-synergy"


async def ask(kubeconfig: Path, command: str, job: str, namespace: str) -> list[str]:
    """The lines of `kubectl synergy COMMAND JOB`, the command itself first."""
    process = await asyncio.create_subprocess_exec(
        *(str(_PLUGIN), command, job, "--namespace", namespace, "--kubeconfig", str(kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return [f"$ kubectl synergy {command} {job}", *said.decode().rstrip().splitlines()]


@contextmanager
def dashboard(kubeconfig: Path, kubectl: Path, console: Console) -> Iterator[None]:
    """The dashboard on a port of this machine until the block ends; prints its address."""
    environment = {**os.environ, "PATH": f"{kubectl.parent}:{os.environ.get('PATH', '')}"}
    forward = subprocess.Popen(
        [str(_PLUGIN), "dashboard", "--no-open", "--kubeconfig", str(kubeconfig)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        assert forward.stdout is not None
        for line in (forward.stdout.readline(), forward.stdout.readline()):
            console.print(
                f"[bold]{line.rstrip()}[/bold]" if line else "the dashboard cannot be reached", soft_wrap=True
            )
        yield
    finally:
        forward.terminate()
        forward.wait()
