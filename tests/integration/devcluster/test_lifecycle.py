"""Up, down, and everything that may go wrong between them, on a real cluster of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from integration.devcluster.conftest import UP, Place
from synergy_devcluster.network import BRIDGE, SYSCTLS
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import wait_for
from synergy_devcluster.state import StateFile

pytestmark = pytest.mark.integration


def pids(place: Place) -> dict[str, int]:
    """Return the pid of every component."""
    return {name: record.process.pid for name, record in place.state().components.items() if record.process}


def test_up_twice_changes_nothing(cluster: Place) -> None:
    before = pids(cluster)
    again = cluster.devcluster(*UP)
    assert again.returncode == 0, again.stderr
    assert pids(cluster) == before
    assert "the devcluster is up" in again.stdout


def test_up_with_other_options_is_refused_and_changes_nothing(cluster: Place) -> None:
    before = pids(cluster)
    refused = cluster.devcluster("up", "--gpus", "1")
    assert refused.returncode == 2
    assert "other options" in refused.stderr
    assert "--gpus 2" in refused.stderr
    assert pids(cluster) == before


def test_a_command_runs_on_the_cluster_that_is_there(cluster: Place) -> None:
    before = pids(cluster)
    kubectl = cluster.state().programs["kubectl"]
    ran = cluster.devcluster("run", "--gpus", "1", "--", "sh", "-c", f"{kubectl} get nodes -o name; exit 7")
    assert ran.returncode == 7
    assert "node/ksdev-real" in ran.stdout
    assert pids(cluster) == before
    missing = cluster.devcluster("run", "no-such-program")
    assert (missing.returncode, missing.stderr) == (2, "error: no-such-program: No such file or directory\n")


def test_status_tells_that_all_is_well_and_what_is_not(cluster: Place) -> None:
    well = cluster.devcluster("status", "--json")
    assert well.returncode == 0
    told = json.loads(well.stdout)
    assert (told["healthy"], told["nodes"], told["nodes_ready"]) == (True, 4, 4)
    assert cluster.devcluster("component", "kill", "coredns").returncode == 0
    broken = cluster.devcluster("status", "--json")
    assert broken.returncode == 1
    down = [item for item in json.loads(broken.stdout)["components"] if not item["alive"]]
    assert [item["name"] for item in down] == ["coredns"]
    assert any("CoreDNS" in line for line in down[0]["last_log_lines"])
    revived = cluster.devcluster(*UP)
    assert "coredns started again" in revived.stdout
    assert cluster.devcluster("status").returncode == 0


def test_status_tells_when_the_network_is_no_longer_shut(cluster: Place) -> None:
    cluster.run("nft", "flush", "chain", "inet", "ksdev", "forward")
    cluster.run("ip", "route", "delete", "10.96.0.0/16", "dev", BRIDGE)
    broken = cluster.devcluster("status", "--json")
    problems = json.loads(broken.stdout)["network_problems"]
    assert broken.returncode == 1
    assert any("10.96.0.0/16 is not routed" in problem for problem in problems)
    assert any("firewall table" in problem for problem in problems)
    assert cluster.devcluster("down").returncode == 0


def test_the_api_server_keeps_its_data_over_a_crash_of_everything_behind_it(cluster: Place) -> None:
    cluster.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    for name in ("etcd", "kube-apiserver"):
        assert cluster.devcluster("component", "kill", name).returncode == 0
    for name in ("etcd", "kube-apiserver"):
        assert cluster.devcluster("component", "start", name).returncode == 0

    def answers() -> bool:
        return _ready(cluster)

    assert wait_for(answers, 30, 0.3)
    assert cluster.get("configmap", "kept")["data"] == {"a": "b"}
    cluster.kubectl("delete", "configmap", "kept")


def _ready(place: Place) -> bool:
    told = json.loads(place.devcluster("status", "--json").stdout)
    return told["nodes"] == told["nodes_ready"] == 4


@pytest.mark.parametrize("reached", ["containerd", "kube-apiserver", "kubelet"])
def test_an_up_that_was_killed_is_cleaned_by_the_next(place: Place, reached: str) -> None:
    assert place.devcluster("down").returncode == 0
    killed = subprocess.Popen(place.command(*UP), stdout=subprocess.DEVNULL, start_new_session=True)
    file = StateFile.of(place.paths)
    try:
        assert wait_for(lambda: reached in (state.components if (state := file.load()) else ()), 180, 0.01)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    instance = place.state().instance
    assert processes.marked(instance), "something of the killed up still runs"
    up = place.devcluster(*UP)
    assert up.returncode == 0, up.stderr
    assert "half-started" in up.stdout
    assert processes.marked(instance) == []
    assert _ready(place)


def test_an_up_that_finds_its_port_taken_says_so_and_leaves_nothing(place: Place) -> None:
    assert place.devcluster("down").returncode == 0
    listen = (
        "import socket,sys; s = socket.create_server(('127.0.0.1', 6443)); print('ready', flush=True); sys.stdin.read()"
    )
    taken = subprocess.Popen(
        place.inside("python3", "-c", listen), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert taken.stdin
    assert taken.stdout
    assert taken.stdout.readline() == "ready\n"
    refused = place.devcluster(*UP)
    assert refused.returncode == 1
    assert "port 6443 is in use by pid" in refused.stderr
    assert not place.paths.state.exists()
    taken.communicate("")


def test_down_leaves_nothing(cluster: Place) -> None:
    cluster.pod("left-running", nodeName="ksdev-real", container={"resources": {"limits": {"nvidia.com/gpu": 1}}})
    cluster.wait_phase("left-running", "Running")
    state = cluster.state()
    assert processes.in_cgroup(cluster.paths.cgroup), "a container runs"
    assert cluster.devcluster("down").returncode == 0
    assert processes.marked(state.instance) == []
    assert processes.in_cgroup(cluster.paths.cgroup) == []
    check = (
        "from synergy_devcluster.teardown import leftovers; from synergy_devcluster.paths import Paths; import json;"
        f"from synergy_devcluster.network import read_sysctls; "
        f"print(json.dumps([leftovers(Paths.of('{cluster.name}')), read_sysctls()]))"
    )
    left, kernel = json.loads(cluster.run(sys.executable, "-c", check).stdout)
    assert left == []
    assert kernel == {name: state.sysctls[name] for name in SYSCTLS if name in state.sysctls}
    links = cluster.run("ip", "-o", "link").stdout
    assert [line.split(":")[1].strip() for line in links.splitlines()] == ["lo", "out1@out0", "out0@out1"]
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if cluster.name in line]


def test_a_command_has_a_cluster_for_its_own_time(place: Place) -> None:
    assert place.devcluster("down").returncode == 0
    script = "trap 'kill $!; echo told; exit 9' TERM; echo begun with $KUBECONFIG; sleep 60 > /dev/null & wait"
    command = place.command("run", "--gpus", "1", "--volumes", "0", "--", "sh", "-c", script)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout
        assert any(line == f"begun with {place.paths.kubeconfig}\n" for line in iter(runner.stdout.readline, ""))
        assert place.state()
        runner.terminate()
        assert "told" in runner.stdout.read()
    assert runner.returncode == 9
    assert not place.paths.state.exists()
