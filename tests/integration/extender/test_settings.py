"""The extender's process without an API server."""

import subprocess
import sys

import pytest

POD = {"SYNERGY_POD_NAME": "extender-0", "SYNERGY_POD_NAMESPACE": "kube-synergy"}


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"SYNERGY_KUBECONFIG": "/no/file"}, "cannot start: /no/file: Invalid kube-config file"),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "cannot start: the pod's service account cannot be used"),
    ],
)
def test_without_an_api_server_to_ask_the_process_ends_with_words(environment: dict[str, str], says: str) -> None:
    command = [sys.executable, "-m", "synergy_extender"]
    done = subprocess.run(command, env={**POD, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
