"""`kubectl synergy dashboard` with a program in kubectl's place, which says what kubectl says."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

_KUBECTL = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
  *"create token"*) [ -n "$NO_RIGHTS" ] && { echo "forbidden" >&2; exit 1; }; echo made-token;;
  *port-forward*) [ -n "$NO_SERVICE" ] && { echo "services not found" >&2; exit 1; }
    echo "Forwarding from 127.0.0.1:4711 -> 8080"
    for n in 1 2 3 4 5 6 7 8; do head -c 16000 /dev/zero | tr '\\0' x; echo; done;;
esac
"""


def _run(folder: Path, user: dict[str, str], **environment: str) -> tuple["subprocess.CompletedProcess[str]", str]:
    """The command's end and what kubectl was asked."""
    kubectl = folder / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(_KUBECTL)
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    calls = folder / "calls"
    calls.touch()
    result = subprocess.run(
        [
            str(Path(sys.executable).parent / "kube-synergy"),
            "dashboard",
            "--no-open",
            "--kubeconfig",
            str(folder / "config"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            **os.environ,
            **environment,
            "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
            "CALLS": str(calls),
        },
    )
    return result, calls.read_text()


def test_the_token_of_the_kubeconfig_is_in_the_address(tmp_path: Path) -> None:
    result, calls = _run(tmp_path, {"token": "my-own"})
    assert "http://127.0.0.1:4711/#token=my-own" in result.stdout
    assert "create token" not in calls
    assert result.stderr.strip().endswith("kubectl has stopped forwarding the port")


def test_without_a_token_one_of_the_viewer_is_asked_for(tmp_path: Path) -> None:
    result, calls = _run(tmp_path, {})
    assert "http://127.0.0.1:4711/#token=made-token" in result.stdout
    assert "create token kube-synergy-dashboard-viewer" in calls


@pytest.mark.parametrize(
    ("lacking", "told"), [("NO_RIGHTS", "single sign-on"), ("NO_SERVICE", "does not forward a port")]
)
def test_what_kubectl_refuses_is_told(tmp_path: Path, lacking: str, told: str) -> None:
    result, _ = _run(tmp_path, {}, **{lacking: "1"})
    assert result.returncode == 1
    assert told in result.stderr
    assert "Traceback" not in result.stderr
