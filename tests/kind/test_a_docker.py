"""The project's own Docker daemon by itself: what it says where it cannot run, and that ending it leaves nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from synergy_devcluster import DevclusterError
from synergy_devcluster.kind.docker import OwnDocker, leftovers

pytestmark = pytest.mark.e2e


def test_a_daemon_that_does_not_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    docker = OwnDocker("kube-synergy-broken-kind", tmp_path)
    _program(tmp_path, "sbin/dockerd", "echo level=fatal msg=no-overlay; exit 1")
    _program(tmp_path, "bin/docker", "exit 1")
    with pytest.raises(DevclusterError, match="dockerd does not start here: level=fatal msg=no-overlay"):
        docker.start(print)
    assert leftovers(docker) == []


@pytest.mark.parametrize("client", ['[ "$1" = version ] || exit 1', None], ids=["ends no container", "no client"])
def test_ending_it_needs_no_answer_of_the_daemon(tmp_path: Path, client: str | None) -> None:
    """Nor Docker's client, which is gone with the cache."""
    docker = OwnDocker("kube-synergy-broken-kind", tmp_path)
    if client is not None:
        _program(tmp_path, "bin/docker", client)
    docker.state.mkdir()
    docker.run.mkdir()
    (docker.run / "docker.sock").touch()
    docker.end()
    assert not docker.state.exists()
    assert not docker.run.exists()


def _program(cache: Path, name: str, text: str) -> None:
    program = cache / "docker/usr" / name
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_a_second_daemon_is_refused_and_the_first_stays(own_docker: OwnDocker) -> None:
    second = replace(own_docker, name="kube-synergy-second-kind")
    with pytest.raises(DevclusterError, match="kskind0 is in use"):
        second.start(print)
    second.end()
    assert own_docker.answers()
    assert "kind" in own_docker.docker("network", "ls", "--format={{.Name}}").split()


def test_ending_it_ends_its_containers_and_starting_it_again_makes_it_anew(own_docker: OwnDocker) -> None:
    own_docker.end()
    assert not own_docker.answers()
    assert leftovers(own_docker) == []
    own_docker.start(print)
    own_docker.start(print)
    assert own_docker.answers()


def test_nothing_in_it_may_leave_the_machine(own_docker: OwnDocker) -> None:
    told = own_docker.docker("info", "--format={{.DefaultRuntime}} {{.Driver}}").split()
    assert told == ["trimmed", "overlay2"]
    (masquerade,) = own_docker.docker(
        "network", "inspect", "kind", '--format={{index .Options "com.docker.network.bridge.enable_ip_masquerade"}}'
    ).split()
    assert masquerade == "false"
