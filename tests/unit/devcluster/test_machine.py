"""What a machine must have, what is in the way, certificates, and the command line's errors."""

import json
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from synergy_devcluster import network
from synergy_devcluster.cli import devcluster
from synergy_devcluster.control_plane import command_lines as control_plane
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.node import kwok
from synergy_devcluster.options import Options, parse_fake_nodes
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import prerequisites
from synergy_devcluster.programs.commands import run
from synergy_devcluster.real_nodes import real_nodes
from synergy_devcluster.run_with import alone

ABSENT = ["--name", "ksdev-no-such-cluster"]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Folders that nothing else uses."""
    return Paths(tmp_path / "state", tmp_path / "run", "/unused", tmp_path / "cache")


def test_everything_missing_is_told_in_one_message_with_the_command() -> None:
    missing = prerequisites.find_missing(lambda _program: None)
    assert {"containerd", "runc", "buildah", "nftables"} <= set(missing.packages)
    message = missing.message()
    assert "\n" not in message
    assert f"apt-get install --no-install-recommends {' '.join(missing.packages)}" in message
    assert "Go 1.26 or newer is not on PATH" in message


def test_an_old_go_is_told_with_both_versions(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.21.3\n")
    go.chmod(0o755)
    missing = prerequisites.find_missing(lambda program: str(go) if program == "go" else "/bin/true")
    assert missing.others == ("Go 1.21.3 is on PATH, 1.26 or newer is needed",)
    assert prerequisites.find_missing(lambda _program: "/bin/true", with_go=False).others == ()


def test_a_port_in_use_is_told_with_its_holder() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"pid {os.getpid()} " in str(network.listener(port))
    assert network.listener(port) is None


def test_a_failing_program_is_told_by_its_last_line() -> None:
    with pytest.raises(DevclusterError, match="exit 3: the reason"):
        run(["sh", "-c", "echo noise >&2; echo the reason >&2; exit 3"])
    with pytest.raises(DevclusterError, match="ksdev-no-such-program is not installed"):
        run(["ksdev-no-such-program"])
    with pytest.raises(DevclusterError, match="did not end within"):
        run(["sleep", "5"], timeout_s=0.05)


def test_certificates_are_signed_by_the_clusters_own_ca_and_keys_are_private(paths: Paths) -> None:
    ids = control_plane.make_identities(paths, real_nodes(paths, 2))
    openssl = shutil.which("openssl")
    assert openssl
    pairs = (ids.api_server, ids.kubelet_server, ids.kubelet_client, ids.front_proxy)
    for pair in pairs:
        checked = subprocess.run(
            [openssl, "verify", "-CAfile", ids.authority.certificate, pair.certificate],
            check=False,
            capture_output=True,
        )
        assert checked.returncode == 0, checked.stderr
    private = [ids.authority.key, *(pair.key for pair in pairs), *ids.kubeconfigs.values()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}


def test_the_api_servers_certificate_has_every_name_it_is_called_by(paths: Paths) -> None:
    ids = control_plane.make_identities(paths, real_nodes(paths, 2))
    text = run(["openssl", "x509", "-in", ids.api_server.certificate, "-noout", "-ext", "subjectAltName"])
    for name in ("127.0.0.1", network.NODE_ADDRESS, network.API_SERVICE_ADDRESS, "kubernetes.default.svc"):
        assert name in text


def test_fake_nodes_carry_their_capacity_and_are_kwoks_alone() -> None:
    (group,) = parse_fake_nodes("V100=2x8:cpu=24:mem=500Gi")
    first, second = kwok.nodes(group)
    assert [item["metadata"]["name"] for item in (first, second)] == ["fake-v100-000", "fake-v100-001"]
    assert first["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert first["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert first["status"]["allocatable"]["memory"] == str(500 * 2**30)


def test_a_group_without_gpus_has_neither_the_resource_nor_the_labels() -> None:
    (node,) = kwok.nodes(parse_fake_nodes("plain=1x0")[0])
    assert "nvidia.com/gpu" not in node["status"]["capacity"]
    assert not [label for label in node["metadata"]["labels"] if label.startswith("nvidia.com")]


def test_a_name_has_to_be_a_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInputError, match="--name"):
        Paths.of("../etc")
    monkeypatch.setenv("KUBE_SYNERGY_DEVCLUSTER_NAME", "a b")
    with pytest.raises(BadInputError, match="KUBE_SYNERGY_DEVCLUSTER_NAME: 'a b'"):
        Paths.of()


def test_who_breaks_a_devcluster_gets_none_that_is_there_already(paths: Paths) -> None:
    paths.state.mkdir(parents=True, exist_ok=True)
    paths.state_file.write_text("{}")
    with pytest.raises(BadInputError, match="a devcluster is here already"):  # noqa: SIM117 - one is what the other raises
        with alone(Options(), paths=paths, report=print):
            pytest.fail("it was given one")
    assert paths.state_file.read_text() == "{}"


def test_the_environment_names_the_devcluster_where_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBE_SYNERGY_DEVCLUSTER_NAME", "second")
    assert Paths.of().state == Path("/var/lib/second")
    assert Paths.of("third").state == Path("/var/lib/third")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["up", "--fake-nodes", "V100"], "--fake-nodes: 'V100' is not TYPE=NODESxGPUS"),
        (["up", "--gpus", "99"], "--gpus: 99 is not between 0 and 64"),
        (["up", "--bin-dir", "/no/such/folder"], "--bin-dir: /no/such/folder is not a folder"),
        (["--name", "a/b", "down"], "--name or KUBE_SYNERGY_DEVCLUSTER_NAME: 'a/b'"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(devcluster, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["kubeconfig"], ["load-image", "/x"], ["gpu", "list"], ["component", "kill", "etcd"], ["add-nodes", "T4=1x1"]],
)
def test_without_a_cluster_the_next_step_is_told(arguments: list[str]) -> None:
    result = CliRunner().invoke(devcluster, [*ABSENT, *arguments])
    assert result.exit_code == 1
    assert "no devcluster is running: start one with 'kube-synergy devcluster up'" in result.stderr


def test_status_without_a_cluster_is_still_one_json_object() -> None:
    result = CliRunner().invoke(devcluster, [*ABSENT, "status", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["phase"] is None
    assert told["healthy"] is False


def test_down_without_a_cluster_is_no_error() -> None:
    result = CliRunner().invoke(devcluster, [*ABSENT, "down"])
    assert result.exit_code == 0
    assert result.stdout == "no devcluster is here\n"


def test_real_nodes_differ_in_all_that_must_not_clash(paths: Paths) -> None:
    nodes = real_nodes(paths, 3)
    for field in (
        "name",
        "address",
        "pod_addresses",
        "health_port",
        "root",
        "cgroup",
        "containerd_socket",
        "gpu_health",
    ):
        assert len({getattr(node, field) for node in nodes}) == 3, field
    assert nodes[0].name == "ksdev-real"
    assert nodes[0].address == network.NODE_ADDRESS
    assert {node.health_port for node in nodes} <= set(network.PORTS)
