"""What a shell needs to use a kept cluster of the project's own Docker."""

from pathlib import Path

import pytest

from synergy_devcluster.kind import __main__ as command
from synergy_devcluster.kind.docker import OwnDocker
from synergy_devcluster.paths import Paths


def test_a_shell_gets_the_programs_the_socket_and_the_kubeconfig(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"kind": Path("/cache/kind-1/kind"), "kubectl": Path("/cache/kubernetes/kubectl")}
    monkeypatch.setattr(command, "locate", lambda *_, **__: there)
    assert command.main(["env"]) == 0
    paths = Paths.of()
    docker = OwnDocker.of(paths)
    assert capsys.readouterr().out.splitlines() == [
        f"export PATH={docker.client.parent}:/cache/kind-1:/cache/kubernetes:$PATH",
        f"export DOCKER_HOST=unix://{docker.run}/docker.sock",
        f"export KUBECONFIG={paths.cache}/kind.kubeconfig",
    ]
