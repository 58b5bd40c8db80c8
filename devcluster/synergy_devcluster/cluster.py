"""Bring the devcluster up and down."""

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synergy_devcluster import components, control_plane, images, kwok, manifests, network, node, processes, toolchain
from synergy_devcluster.api import Api
from synergy_devcluster.base_image import Buildah, ensure_base
from synergy_devcluster.components import Component
from synergy_devcluster.control_plane import REAL_NODE, Identities
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.node import NodePaths
from synergy_devcluster.options import FakeNodes, Options
from synergy_devcluster.paths import Paths
from synergy_devcluster.state import State, boot_id, load
from synergy_devcluster.steps import Report, Steps
from synergy_devcluster.teardown import tear_down


def silent(_text: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Cluster:
    """A running devcluster."""

    paths: Paths
    state: State

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.paths.kubeconfig

    def api(self) -> Api:
        """Return a new client of its API server."""
        return Api(self.paths.pki)

    def program(self, name: str) -> Path:
        """Return the path of one of its programs, for example ``kubectl``, ``helm`` or ``kube-scheduler``."""
        return Path(self.state.programs[name])

    def component(self, name: str) -> Component:
        """Return one of its long-running programs, to stop, kill, pause or restart it."""
        component = Component(name, self.paths, self.state)
        component.record  # noqa: B018  an unknown name is refused here, not at first use
        return component

    def load_image(self, archive: Path) -> None:
        """Import an image archive into the real node."""
        images.load_archive(archive, NodePaths(self.paths).containerd_socket)


def up(options: Options | None = None, *, report: Report = silent, paths: Paths | None = None) -> Cluster:
    """Start a devcluster, or return the one that runs already.

    A half-started cluster that a killed ``up`` left is taken down first.

    Raises:
        BadInputError: an option cannot be met.
        DevclusterError: a cluster with other options runs, something on the machine is in the way, or a
            component does not come up; a half-started cluster is taken down again.
    """
    wanted, places = options or Options(), paths or Paths.default()
    steps = Steps(report)
    with _locked(places):
        state = load(places.state_file)
        if state and state.phase == "running" and state.this_boot():
            return _running(places, state, wanted, steps)
        if state:
            report("a half-started devcluster is here: taking it down first")
            tear_down(places, state, steps)
        return _start(places, wanted, steps)


def down(*, report: Report = silent, paths: Paths | None = None) -> bool:
    """Take the devcluster down; return False when there was none."""
    places = paths or Paths.default()
    with _locked(places):
        state = load(places.state_file)
        if state is None:
            return False
        tear_down(places, state, Steps(report))
        return True


def connect(paths: Paths | None = None) -> Cluster:
    """Return the running devcluster.

    Raises:
        DevclusterError: there is none, or it is half started.
    """
    places = paths or Paths.default()
    state = load(places.state_file)
    if state is None or state.phase != "running" or not state.this_boot():
        raise DevclusterError("no devcluster is running: start one with 'kube-synergy devcluster up'")
    return Cluster(places, state)


def add_nodes(groups: tuple[FakeNodes, ...], paths: Paths | None = None) -> None:
    """Add fake nodes to the running cluster; nodes of the same names are updated."""
    api = connect(paths).api()
    for group in groups:
        make_fake_nodes(api, group)


def prepare(paths: Paths, report: Report) -> None:
    """Build everything that is cached: the programs, the pause image and the base image."""
    programs = toolchain.locate(paths, report)
    images.pause_image(programs["pause"], node.PAUSE_IMAGE, paths, report)
    ensure_base(paths, Buildah(paths.images / "store"), report)


def _running(paths: Paths, state: State, wanted: Options, steps: Steps) -> Cluster:
    if state.options.with_programs_from(wanted) != wanted:
        raise DevclusterError("a devcluster with other options is running: 'kube-synergy devcluster down' first")
    cluster = Cluster(paths, state)
    dead = [name for name in state.components if not cluster.component(name).alive()]
    for name in dead:
        with steps.step(f"{name} started again"):
            cluster.component(name).start()
    steps.report("the devcluster is up already" if not dead else "the devcluster is whole again")
    return cluster


def _start(paths: Paths, options: Options, steps: Steps) -> Cluster:
    with steps.step("programs"):
        programs = {name: str(path) for name, path in toolchain.locate(paths, steps.report, options.bin_dir).items()}
    with steps.step("pause image"):
        pause = images.pause_image(Path(programs["pause"]), node.PAUSE_IMAGE, paths, steps.report)
    network.check_free()
    state = State(options, programs, boot_id(), sysctls=network.read_sysctls())
    state.made_folders = [folder for folder in node.FIXED_FOLDERS if not Path(folder).exists()]
    state.save(paths.state_file)
    try:
        _start_all(paths, state, pause, steps)
    except BaseException:
        tear_down(paths, state, steps)
        raise
    state.phase = "running"
    state.save(paths.state_file)
    steps.report(f"the devcluster is up after {steps.elapsed_s():.1f} s")
    return Cluster(paths, state)


def _start_all(paths: Paths, state: State, pause: Path, steps: Steps) -> None:
    launch = _Launch(paths, state)
    with steps.step("network"):
        for folder in (paths.run, paths.logs, paths.config, *map(Path, node.FIXED_FOLDERS)):
            folder.mkdir(parents=True, exist_ok=True)
        listing = network.set_up()
        (paths.config / "firewall.txt").write_text(listing, encoding="utf-8")
    with steps.step("certificates"):
        ids = control_plane.make_identities(paths)
    with steps.step("API server"):
        launch.node(pause)
        launch.api_server(ids)
    api = Api(paths.pki)
    with steps.step("controllers, scheduler, kubelet, proxy, DNS"):
        launch.rest(ids)
        api.apply_all(manifests.rights())
        api.apply(manifests.storage_class())
        api.apply_all(manifests.volume(paths, index) for index in range(state.options.volumes))
    with steps.step(f"{sum(group.nodes for group in state.options.fake_nodes)} fake nodes"):
        for group in state.options.fake_nodes:
            make_fake_nodes(api, group)
    with steps.step(f"node {REAL_NODE} with {state.options.gpus} GPUs"):
        _wait_ready(Cluster(paths, state), 60)


def make_fake_nodes(api: Api, group: FakeNodes) -> None:
    """Create or update the node objects of a group."""
    for manifest in kwok.nodes(group):
        api.apply(manifest)


class _Launch:
    """Starts the components of a new cluster in their order."""

    def __init__(self, paths: Paths, state: State) -> None:
        self._paths = paths
        self._state = state
        self._programs = state.programs
        self._node = NodePaths(paths)

    def _add(self, name: str, argv: list[str]) -> Component:
        return components.add(self._paths, self._state, name, argv)

    def _inside(self, argv: list[str]) -> list[str]:
        holder = self._state.components["node"].process
        if holder is None:
            raise DevclusterError("the node's mount namespace is gone")
        return node.inside(holder.pid, argv)

    def node(self, pause: Path) -> None:
        """Start the node's namespace and containerd, and give it the sandbox image."""
        node.make_cgroups()
        holder = self._add("node", node.namespace(self._node, self._programs["pause"]))
        exe = Path(f"/proc/{holder.record.process.pid if holder.record.process else 0}/exe")
        program = Path(self._programs["pause"]).resolve()
        if not processes.wait_for(lambda: exe.exists() and exe.resolve() == program, 5):
            raise _not_up(holder, "did not make the node's mount namespace")
        containerd = self._add("containerd", self._inside(node.containerd(self._node)))
        if not processes.wait_for(self._node.containerd_socket.exists, 15):
            raise _not_up(containerd, "opened no socket")
        images.load_archive(pause, self._node.containerd_socket)

    def api_server(self, ids: Identities) -> None:
        """Start etcd and the API server and wait until it is ready."""
        self._add("etcd", control_plane.etcd(self._programs["etcd"], self._paths))
        server = self._add("kube-apiserver", control_plane.api_server(self._programs["kube-apiserver"], ids))
        api = Api(self._paths.pki)
        if not processes.wait_for(lambda: api.ready() or not server.alive(), 60) or not server.alive():
            raise _not_up(server, "is not ready")

    def rest(self, ids: Identities) -> None:
        """Start everything that needs the API server."""
        paths, programs = self._paths, self._programs
        gpus = self._state.options.gpus
        self._add(
            "kube-controller-manager", control_plane.controller_manager(programs["kube-controller-manager"], ids)
        )
        self._add("kube-scheduler", control_plane.scheduler(programs["kube-scheduler"], ids))
        self._add("kubelet", self._inside(node.kubelet(programs["kubelet"], ids, paths, self._state.options)))
        plugin = [sys.executable, "-m", "synergy_devcluster.gpu_plugin", f"--node={REAL_NODE}", f"--gpus={gpus}"]
        self._add("gpu-plugin", self._inside([*plugin, f"--health-file={self._node.gpu_health}"]))
        self._add("kube-proxy", control_plane.kube_proxy(programs["kube-proxy"], ids, paths))
        self._add("coredns", control_plane.coredns(programs["coredns"], ids, paths))
        self._add("kwok", kwok.kwok(programs["kwok"], ids, paths))


def _not_up(component: Component, what: str) -> DevclusterError:
    last = (component.log_tail(1) or ["its log is empty"])[0]
    return DevclusterError(f"{component.name} {what}: {last}")


def _wait_ready(cluster: Cluster, timeout_s: float) -> None:
    """Wait until every node is Ready, the real one with all its GPUs, and no component has ended."""
    api = cluster.api()
    expected = 1 + sum(group.nodes for group in cluster.state.options.fake_nodes)
    gpus = str(cluster.state.options.gpus)

    def ready() -> bool:
        for name in cluster.state.components:
            if not cluster.component(name).alive():
                raise _not_up(cluster.component(name), "ended")
        listed = api.get("/api/v1/nodes")["items"]
        real = [item for item in listed if item["metadata"]["name"] == REAL_NODE]
        allocatable = real[0]["status"].get("allocatable", {}) if real else {}
        with_gpus = gpus == "0" or allocatable.get("nvidia.com/gpu") == gpus
        return with_gpus and len(listed) >= expected and all(map(node_ready, listed))

    if not processes.wait_for(ready, timeout_s, 0.2):
        raise _not_up(cluster.component("kubelet"), f"did not bring {expected} nodes to Ready in {timeout_s:.0f} s")


def node_ready(item: dict[str, Any]) -> bool:
    """Say whether a node object's Ready condition is true."""
    conditions = item["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


@contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    with paths.lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevclusterError("another 'devcluster up' or 'down' is at work: wait for it to end") from None
        yield
