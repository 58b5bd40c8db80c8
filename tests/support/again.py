"""`python -m support.again PYTEST_ARGUMENTS...`: pytest, and once more for the few tests that failed.

For suites of real processes, which a busy machine can trouble in ways that have nothing to do with the change. What
failed first is printed in full all the same, and named at the end. More than `MOST` failures are not chance.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 3


def _pytest(cache: Path, arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", f"--override-ini=cache_dir={cache}", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, env=environment, check=False).returncode


def _failed(cache: Path) -> list[str]:
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def main(arguments: list[str]) -> int:
    """The exit status of pytest, or of its second run."""
    # an interrupt ends pytest, which then says what has failed
    signal.signal(signal.SIGINT, lambda *_: None)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        status = _pytest(cache, arguments)
        failed = _failed(cache)
        if status != 1 or not 0 < len(failed) <= MOST:
            return status
        print("once more for what failed:", *failed, sep="\n  ", flush=True)
        status = _pytest(cache, [*arguments, "--last-failed", "--last-failed-no-failures=none"])
        print(
            "failed twice:" if status else "failed once, and passed the second time:", *failed, sep="\n  ", flush=True
        )
        return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
