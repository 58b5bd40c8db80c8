"""A Docker daemon of the project's own, for kind on a machine that has none: on its own socket, folders and bridge,
with no way out of the machine. Ending it leaves nothing."""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.kind import runtime
from synergy_devcluster.node.node import cgroup_folders
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import prerequisites, processes
from synergy_devcluster.programs.commands import run
from synergy_devcluster.programs.processes import MARKER, ProcessId
from synergy_devcluster.state import boot_id
from synergy_devcluster.steps import Report
from synergy_devcluster.teardown import remove_cgroups

BRIDGE: Final = "kskind0"
NETWORK: Final = "kind"
"""The Docker network that kind gives to its nodes; kind takes one that is there."""
_NOWHERE: Final = "192.0.2.1"
"""No name server is at this address, which is kept for examples."""
_GUARD: Final = f"""
table inet {BRIDGE} {{
  chain input {{
    type filter hook input priority filter - 10; policy accept;
    iifname "{BRIDGE}" ct state established,related accept
    iifname "{BRIDGE}" reject
  }}
  chain forward {{
    type filter hook forward priority filter - 10; policy accept;
    iifname "{BRIDGE}" oifname != "{BRIDGE}" reject
    iifname != "{BRIDGE}" oifname "{BRIDGE}" reject
  }}
}}
"""
_SYSCTLS: Final = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")
"""The kubelets of the nodes change these for the whole machine."""
_START_S: Final = 60.0
_ANSWER_S: Final = 20.0


@dataclass(frozen=True)
class OwnDocker:
    """The daemon of one name, running or not."""

    name: str
    cache: Path

    @classmethod
    def of(cls, paths: Paths | None = None) -> "OwnDocker":
        """The one beside the devcluster of this name, so that network namespaces have one each."""
        places = paths or Paths.of()
        return cls(f"{places.state.name}-kind", places.cache)

    @property
    def state(self) -> Path:
        """The folder of all it writes."""
        return Path("/var/lib") / self.name

    @property
    def run(self) -> Path:
        """The folder of its sockets."""
        return Path("/run") / self.name

    @property
    def client(self) -> Path:
        """Docker's command line."""
        return self._tools / "usr/bin/docker"

    @property
    def environment(self) -> dict[str, str]:
        """What leads `docker` and `kind` to it, and to no other."""
        return {
            "PATH": f"{self._tools / 'usr/bin'}:{os.environ['PATH']}",
            "DOCKER_HOST": f"unix://{self.run / 'docker.sock'}",
            "DOCKER_CONFIG": str(self.state / "client"),
            "KIND_EXPERIMENTAL_PROVIDER": "docker",
        }

    def answers(self) -> bool:
        """Whether it runs and answers."""
        if not (self.run / "docker.sock").exists():
            return False
        try:
            self.docker("version", timeout_s=_ANSWER_S)
        except DevclusterError:
            return False
        return True

    def start(self, report: Report) -> None:
        """Start it unless it runs. What an earlier one left is ended first.

        Raises:
            DevclusterError: this machine cannot run it; the message says why.
        """
        if self.answers():
            return
        self.end()
        if _has_table() or _has_bridge():
            raise DevclusterError(f"{BRIDGE} is in use: another Docker of this project runs in this network")
        self.fetch(report)
        report("dockerd: a Docker daemon of its own, with no way out of this machine")
        (self.state / "client").mkdir(parents=True)
        self.run.mkdir(parents=True)
        self._record(None)
        run(["nft", "-f", "-"], text_in=_GUARD)
        environment = {MARKER: self.name, "PATH": f"{self._tools / 'usr/sbin'}:{os.environ['PATH']}"}
        process = processes.spawn(self._command(), self.log, environment)
        self._record(process)
        if not processes.wait_for(lambda: self.answers() or not process.alive(), _START_S) or not process.alive():
            words = self.last_words()
            self.end()
            raise DevclusterError(f"dockerd does not start here: {words}")
        self.docker(
            "network", "create", "--driver=bridge", f"--opt=com.docker.network.bridge.name={BRIDGE}",
            "--opt=com.docker.network.bridge.enable_ip_masquerade=false", NETWORK,
        )  # fmt: skip

    def docker(self, *arguments: str | Path, timeout_s: float = 120) -> str:
        """Run a `docker` command on it."""
        environment: Mapping[str, str] = {**os.environ, **self.environment}
        return run([self.client, *arguments], env=environment, timeout_s=timeout_s)

    def has_image(self, tag: str) -> bool:
        """Whether it has an image of this name."""
        return bool(self.docker("images", "--quiet", tag).strip())

    def end(self) -> None:
        """End it with all containers, and remove all that it made. Nothing is done if there is nothing."""
        # a daemon that hangs must not keep the rest from being ended: what follows needs none
        with suppress(DevclusterError):
            if self.answers() and (containers := self.docker("ps", "--all", "--quiet").split()):
                self.docker("rm", "--force", "--volumes", *containers)
        record = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else None
        if record and record["boot_id"] == boot_id():
            if record["process"]:
                processes.end([ProcessId(**record["process"])], 20)
            for _ in range(5):
                processes.end([*processes.marked(self.name), *processes.in_cgroup(f"/{self.name}")], 0)
            _remove_network()
            for name, value in record["sysctls"].items():
                if _sysctl(name) != value:  # some machines do not let them be written
                    (Path("/proc/sys") / name).write_text(value, encoding="utf-8")
        self._unmount()
        remove_cgroups(f"/{self.name}")
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)

    @property
    def log(self) -> Path:
        """What the daemon wrote."""
        return self.state / "dockerd.log"

    def last_words(self) -> str:
        """The last error in its log, in short."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines() if self.log.exists() else []
        told = [line for line in lines if "level=fatal" in line or "level=error" in line or "failed" in line] or lines
        return told[-1].strip()[-300:] if told else "no output"

    @property
    def _tools(self) -> Path:
        return self.cache / "docker"

    @property
    def _file(self) -> Path:
        return self.state / "record.json"

    def _record(self, process: ProcessId | None) -> None:
        content = {
            "boot_id": boot_id(),
            "process": {"pid": process.pid, "start_ticks": process.start_ticks} if process else None,
            "sysctls": self._sysctls(),
        }
        # whole or not at all: without it nothing can be ended
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.replace(self._file)

    def _sysctls(self) -> dict[str, str]:
        if self._file.exists():
            kept: dict[str, str] = json.loads(self._file.read_text(encoding="utf-8"))["sysctls"]
            return kept
        return {name: _sysctl(name) for name in _SYSCTLS}

    def fetch(self, report: Report) -> None:
        """Get Debian's package, unpacked beside the built programs: installed, its service would start by itself.

        Raises:
            DevclusterError: this machine is not root on Debian, or the download failed.
        """
        prerequisites.check(with_go=False)
        if (self._tools / "usr/sbin/dockerd").exists():
            return
        report("downloading Debian's docker.io (once)")
        scratch = self._tools.with_name("docker.partial")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        fetch = 'cd "$1" && apt-get -o APT::Sandbox::User=root download -qq docker.io && dpkg-deb -x docker.io_*.deb .'
        try:
            run(["sh", "-c", fetch, "sh", scratch], timeout_s=300)
        except DevclusterError:
            run(["apt-get", "update", "-q"], timeout_s=600)
            run(["sh", "-c", fetch, "sh", scratch], timeout_s=300)
        scratch.rename(self._tools)

    def _command(self) -> list[str]:
        """No rules of its own in the machine's firewall, no default bridge, no forwarding, no name servers."""
        wrapper, settings = self.state / "runtime", self.state / "daemon.json"
        shutil.copy(Path(runtime.__file__), wrapper)
        wrapper.chmod(0o755)
        settings.write_text("{}", encoding="utf-8")
        return [
            str(self._tools / "usr/sbin/dockerd"),
            f"--config-file={settings}",
            f"--host=unix://{self.run / 'docker.sock'}",
            f"--data-root={self.state / 'data'}",
            f"--exec-root={self.run / 'exec'}",
            f"--pidfile={self.run / 'docker.pid'}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
            "--ip-masq=false",
            f"--dns={_NOWHERE}",
            f"--userland-proxy-path={self._tools / 'usr/sbin/docker-proxy'}",
            f"--add-runtime=trimmed={wrapper}",
            "--default-runtime=trimmed",
            "--exec-opt=native.cgroupdriver=cgroupfs",
            f"--cgroup-parent=/{self.name}",
            "--storage-driver=overlay2",
            "--log-level=warn",
        ]

    def _unmount(self) -> None:
        points = [line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
        for point in reversed(points):
            if Path(point).is_relative_to(self.state) or Path(point).is_relative_to(self.run):
                run(["umount", "--lazy", point])


def leftovers(docker: OwnDocker) -> list[str]:
    """What `end` should have removed and is there, in words."""
    found = [f"folder {folder}" for folder in (docker.state, docker.run) if folder.exists()]
    found += [f"cgroup {folder}" for folder in cgroup_folders(f"/{docker.name}") if folder.exists()]
    found += [f"process {process.pid}" for process in processes.marked(docker.name)]
    found += [f"process {process.pid} in its cgroup" for process in processes.in_cgroup(f"/{docker.name}")]
    found += [f"interface {BRIDGE}"] if _has_bridge() else []
    found += [f"firewall table inet {BRIDGE}"] if _has_table() else []
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return found + [f"mount {line.split()[1]}" for line in mounts if docker.name in line]


def _sysctl(name: str) -> str:
    return (Path("/proc/sys") / name).read_text(encoding="utf-8").strip()


def _remove_network() -> None:
    if _has_table():
        run(["nft", "delete", "table", "inet", BRIDGE])
    if _has_bridge():
        run(["ip", "link", "delete", BRIDGE])


def _has_table() -> bool:
    return f"table inet {BRIDGE}" in run(["nft", "list", "tables"]).splitlines()


def _has_bridge() -> bool:
    links = json.loads(run(["ip", "-json", "link"]) or "[]")
    return any(link["ifname"] == BRIDGE for link in links)
