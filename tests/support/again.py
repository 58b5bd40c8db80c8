"""`python -m support.again PYTEST_ARGUMENTS...`: pytest, and once more for the few tests that failed.

For suites of real processes, which a busy machine can trouble in ways that have nothing to do with the change. What
failed first is printed in full all the same, and named at the end. More than `MOST` failures are not chance. Where one
failure in many runs is the fault that is sought, as in chaos, suites are not run by this.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from support.failures import note

MOST = 3


def _pytest(cache: Path, arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", f"--override-ini=cache_dir={cache}", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(command, env=environment) as running:
        # an interrupt from the keyboard reaches pytest by itself, which then says what has failed
        signal.signal(signal.SIGINT, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: running.send_signal(number))
        status = running.wait()
        return status if status >= 0 else 128 - status


def _failed(cache: Path) -> list[str]:
    kept = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(kept.read_text())) if kept.exists() else []


def main(arguments: list[str]) -> int:
    """The exit status of pytest, or of its second run."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        status = _pytest(cache, arguments)
        failed = _failed(cache)
        if status != 1 or not 0 < len(failed) <= MOST:
            return status
        print("once more for what failed:", *failed, sep="\n  ", flush=True)
        status = _pytest(cache, [*arguments, "--last-failed", "--last-failed-no-failures=none"])
        said = {0: "failed once, and passed the second time:", 1: "failed twice:"}
        text = said.get(status, "failed once, and the second run broke off:")
        print(text, *failed, sep="\n  ", flush=True)
        note(f"{text} {' '.join(failed)}")
        return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
