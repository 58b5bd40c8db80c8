"""What importing the library loads."""

import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNERGY_JOB", raising=False)
    monkeypatch.delenv("SYNERGY_PROFILE_SOCKET", raising=False)


def test_no_network_code_is_even_loaded() -> None:
    script = (
        "import sys, synergy_job; list(synergy_job.iterate([1])); "
        "assert not {'ssl', 'http.client', 'socket'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-S", "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})
