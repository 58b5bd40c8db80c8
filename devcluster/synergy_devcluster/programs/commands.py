"""Run short programs and turn their failures into one-line errors."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from synergy_devcluster.errors import DevclusterError


def run(
    argv: Sequence[str | Path],
    *,
    text_in: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        DevclusterError: it is missing, failed, or took longer than ``timeout_s`` seconds; the message
            carries the last line it wrote.
    """
    name = Path(argv[0]).name
    try:
        result = subprocess.run(
            [str(word) for word in argv],
            input=text_in,
            env=dict(env) if env is not None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise DevclusterError(f"{name} is not installed: run 'kube-synergy devcluster prerequisites'") from error
    except subprocess.TimeoutExpired as error:
        raise DevclusterError(f"{name} did not end within {timeout_s:.0f} s") from error
    if result.returncode != 0:
        lines = [line for line in (result.stderr + "\n" + result.stdout).splitlines() if line.strip()]
        detail = lines[-1].strip() if lines else "no output"
        raise DevclusterError(f"{' '.join(str(word) for word in argv[:4])}: exit {result.returncode}: {detail}")
    return result.stdout
