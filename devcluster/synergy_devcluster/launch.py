"""Start the components of a new cluster in their order."""

import sys
from pathlib import Path

from synergy_devcluster import components, control_plane, images, kwok, node, processes
from synergy_devcluster.api import Api
from synergy_devcluster.components import Component
from synergy_devcluster.control_plane import REAL_NODE, Identities
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.node import NodePaths
from synergy_devcluster.options import Options
from synergy_devcluster.paths import Paths
from synergy_devcluster.processes import MARKER
from synergy_devcluster.state import StateFile


class Launch:
    """The start of one cluster: each method returns when what it started works.

    Every method raises DevclusterError when a component does not come up; the message carries the last
    line of its log.
    """

    def __init__(self, paths: Paths, options: Options, programs: dict[str, str]) -> None:
        self._paths = paths
        self._options = options
        self._programs = programs
        self._file = StateFile.of(paths)
        self._node = NodePaths(paths)
        self._holder_pid = 0

    def node(self, pause_archive: Path) -> None:
        """Start the node's mount namespace and containerd, and give it the sandbox image."""
        node.make_cgroups(self._paths.cgroup)
        self._hold_namespace()
        containerd = self._add("containerd", self._inside(node.containerd(self._node)))
        if not processes.wait_for(self._node.containerd_socket.exists, 15):
            raise not_up(containerd, "opened no socket")
        images.load_archive(pause_archive, self._node.containerd_socket)

    def api_server(self, ids: Identities) -> None:
        """Start etcd and the API server."""
        self._add("etcd", control_plane.etcd(self._programs["etcd"], self._paths))
        server = self._add("kube-apiserver", control_plane.api_server(self._programs["kube-apiserver"], ids))
        api = Api(self._paths.pki)
        if not processes.wait_for(lambda: api.ready() or not server.alive(), 60) or not server.alive():
            raise not_up(server, "is not ready")

    def rest(self, ids: Identities) -> None:
        """Start everything that needs the API server; whether it works shows in the nodes becoming Ready."""
        paths, programs = self._paths, self._programs
        controllers = control_plane.controller_manager(programs["kube-controller-manager"], ids)
        self._add("kube-controller-manager", controllers)
        self._add("kube-scheduler", control_plane.scheduler(programs["kube-scheduler"], ids))
        self._add("kubelet", self._inside(node.kubelet(programs["kubelet"], ids, paths, self._options)))
        self._add("gpu-plugin", self._inside(self._gpu_plugin()))
        self._add("kube-proxy", control_plane.kube_proxy(programs["kube-proxy"], ids, paths))
        self._add("coredns", control_plane.coredns(programs["coredns"], ids, paths))
        self._add("kwok", kwok.kwok(programs["kwok"], ids, paths))
        self._add("volume-recycler", [sys.executable, "-m", "synergy_devcluster.volumes", f"--name={paths.state.name}"])

    def _gpu_plugin(self) -> list[str]:
        flags = [f"--node={REAL_NODE}", f"--gpus={self._options.gpus}", f"--health-file={self._node.gpu_health}"]
        return [sys.executable, "-m", "synergy_devcluster.gpu_plugin", *flags]

    def _hold_namespace(self) -> None:
        pause = Path(self._programs["pause"]).resolve()
        log = self._paths.logs / "node.log"
        with self._file.change() as state:
            holder = processes.spawn(node.namespace(self._node, str(pause)), log, {MARKER: state.instance})
            state.holder = holder
        self._holder_pid = holder.pid
        # the shell that makes the mounts becomes the pause program when all are made
        program = Path(f"/proc/{holder.pid}/exe")
        if not processes.wait_for(lambda: holder.alive() and program.resolve() == pause, 5):
            raise DevclusterError(f"the node's mount namespace was not made: {log.read_text(encoding='utf-8').strip()}")

    def _inside(self, argv: list[str]) -> list[str]:
        return node.inside(self._holder_pid, argv)

    def _add(self, name: str, argv: list[str]) -> Component:
        return components.add(self._file, self._paths, name, argv)


def not_up(component: Component, what: str) -> DevclusterError:
    """Return the error for a component that did not come up."""
    last = (component.log_tail(1) or ["its log is empty"])[0]
    return DevclusterError(f"{component.name} {what}: {last}")
