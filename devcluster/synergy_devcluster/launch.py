"""Start the components of a new cluster in their order."""

import sys
from pathlib import Path

from synergy_devcluster.control_plane import command_lines as control_plane
from synergy_devcluster.control_plane import components
from synergy_devcluster.control_plane.api import Api
from synergy_devcluster.control_plane.command_lines import Identities
from synergy_devcluster.control_plane.components import Component
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.images import build as images
from synergy_devcluster.node import kwok, node
from synergy_devcluster.options import Options
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import processes
from synergy_devcluster.programs.processes import MARKER
from synergy_devcluster.real_nodes import RealNode
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
        self._holder_pids: dict[str, int] = {}

    def containerd(self, place: RealNode, pause_archive: Path) -> None:
        """Start a node's mount namespace and its containerd, and give it the sandbox image."""
        node.make_cgroups(place)
        self._hold_namespace(place)
        containerd = self._add(f"containerd{place.suffix}", self._inside(place, node.containerd(place)))
        if not processes.wait_for(place.containerd_socket.exists, 15):
            raise not_up(containerd, "opened no socket")
        images.load_archive(pause_archive, place.containerd_socket)

    def kubelet(self, place: RealNode, ids: Identities) -> None:
        """Start a node's kubelet and the plugin of its GPUs."""
        kubelet = node.kubelet(self._programs["kubelet"], ids, place, self._options)
        self._add(f"kubelet{place.suffix}", self._inside(place, kubelet))
        self._add(f"gpu-plugin{place.suffix}", self._inside(place, node.gpu_plugin(place, self._options)))

    def api_server(self, ids: Identities) -> None:
        """Start etcd and the API server."""
        self._add("etcd", control_plane.etcd(self._programs["etcd"], self._paths))
        argv = control_plane.api_server(self._programs["kube-apiserver"], ids, self._paths)
        server = self._add("kube-apiserver", argv)
        with Api(self._paths.pki) as api:
            in_time = processes.wait_for(lambda: api.ready() or not server.alive(), 60)
        if not in_time or not server.alive():
            raise not_up(server, "is not ready")

    def clients(self, ids: Identities) -> None:
        """Start what needs the API server and belongs to no node; that it works shows in the nodes becoming Ready."""
        paths, programs, nodes = self._paths, self._programs, self._options.fake_node_count()
        controllers = control_plane.controller_manager(
            programs["kube-controller-manager"], ids, grace_s=kwok.grace_seconds(nodes)
        )
        self._add("kube-controller-manager", controllers)
        self._add("kube-scheduler", control_plane.scheduler(programs["kube-scheduler"], ids))
        self._add("kube-proxy", control_plane.kube_proxy(programs["kube-proxy"], ids, paths))
        self._add("coredns", control_plane.coredns(programs["coredns"], ids, paths))
        self._add("kwok", kwok.kwok(programs["kwok"], ids, paths, nodes))
        self._add(
            "volume-recycler", [sys.executable, "-m", "synergy_devcluster.node.volumes", f"--name={paths.state.name}"]
        )

    def _hold_namespace(self, place: RealNode) -> None:
        pause = Path(self._programs["pause"]).resolve()
        log = self._paths.logs / f"node{place.suffix}.log"
        with self._file.change() as state:
            holder = processes.spawn(node.namespace(place, str(pause)), log, {MARKER: state.instance})
            state.holders[place.name] = holder
        self._holder_pids[place.name] = holder.pid
        # the shell that makes the mounts becomes the pause program when all are made
        program = Path(f"/proc/{holder.pid}/exe")
        if not processes.wait_for(lambda: holder.alive() and program.resolve() == pause, 5):
            said = log.read_text(encoding="utf-8").strip()
            raise DevclusterError(f"the mount namespace of {place.name} was not made: {said}")

    def _inside(self, place: RealNode, argv: list[str]) -> list[str]:
        return node.inside(self._holder_pids[place.name], argv)

    def _add(self, name: str, argv: list[str]) -> Component:
        return components.add(self._file, self._paths, name, argv)


def not_up(component: Component, what: str) -> DevclusterError:
    """Return the error for a component that did not come up."""
    last = (component.log_tail(1) or ["its log is empty"])[0]
    return DevclusterError(f"{component.name} {what}: {last}")
