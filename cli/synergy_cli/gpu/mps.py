"""An MPS daemon of our own: started for a measurement, in folders of its own, and ended after it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = "nvidia-cuda-mps-control"
_PATIENCE_S = 20.0
_SERVER_S = 15.0


class MpsError(Exception):
    """MPS cannot be started here; the message says what was tried and what came of it."""


@contextmanager
def mps_daemon(gpu: str, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """MPS on the GPU of that UUID; the environment of its clients. Raises MpsError.

    The GPU's settings are left as they are: MPS works in the compute mode `Default` too.
    """
    program = shutil.which(PROGRAM, path=environ.get("PATH"))
    if program is None:
        raise MpsError(f"{PROGRAM} is not in PATH; it comes with NVIDIA's driver")
    with tempfile.TemporaryDirectory(prefix="kube-synergy-mps-") as folder:
        pipes, logs = Path(folder) / "pipe", Path(folder) / "log"
        for path in (pipes, logs):
            path.mkdir()
        clients = {
            **environ,
            "CUDA_VISIBLE_DEVICES": gpu,
            "CUDA_MPS_PIPE_DIRECTORY": str(pipes),
            "CUDA_MPS_LOG_DIRECTORY": str(logs),
        }
        _run([program, "-d"], clients, "", logs)
        try:
            _run([program], clients, f"start_server -uid {os.getuid()}\n", logs)
            _wait_for_server(program, clients, logs)
            # clients find the server by its folder; naming the GPU once more would hide it from them
            yield {name: value for name, value in clients.items() if name != "CUDA_VISIBLE_DEVICES"}
        finally:
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [program], input="quit\n", env=clients, capture_output=True, text=True, timeout=60, check=False
                )


def _run(command: list[str], environ: Mapping[str, str], words: str, logs: Path) -> str:
    tried = f"`{' '.join([Path(command[0]).name, *command[1:]])}`" + (f" with {words.strip()!r}" if words else "")
    try:
        answer = subprocess.run(
            command, input=words, env=dict(environ), capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpsError(f"{tried} failed: {error}{_tails(logs)}") from None
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip()[:300]
        raise MpsError(f"{tried} ended with {answer.returncode}: {said or 'it said nothing'}{_tails(logs)}")
    return answer.stdout


def _wait_for_server(program: str, environ: Mapping[str, str], logs: Path) -> None:
    deadline = time.monotonic() + _SERVER_S
    while not _run([program], environ, "get_server_list\n", logs).strip().isdecimal():
        if time.monotonic() > deadline:
            raise MpsError(f"the daemon runs, and no server of it came within {_SERVER_S:g} s{_tails(logs)}")
        time.sleep(0.2)


def _tails(logs: Path) -> str:
    """The ends of the daemon's and the server's logs."""
    found = ""
    for path in sorted(logs.glob("*.log")):
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
        found += f"; {path.name}: {' | '.join(lines)}" if lines else ""
    return found
