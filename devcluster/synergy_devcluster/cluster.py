"""Bring the devcluster up and down."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synergy_devcluster import network
from synergy_devcluster.control_plane import command_lines as control_plane
from synergy_devcluster.control_plane.api import Api
from synergy_devcluster.control_plane.components import Component
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.images import build as images
from synergy_devcluster.images.base import Buildah, ensure_base
from synergy_devcluster.launch import Launch, not_up
from synergy_devcluster.node import kwok, manifests, node
from synergy_devcluster.options import FakeNodes, Options
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import prerequisites, processes, toolchain
from synergy_devcluster.real_nodes import RealNode, real_nodes
from synergy_devcluster.state import State, StateFile, boot_id
from synergy_devcluster.steps import Report, Steps, silent
from synergy_devcluster.teardown import tear_down


@dataclass(frozen=True)
class Cluster:
    """A running devcluster."""

    paths: Paths
    options: Options
    programs: dict[str, str]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.paths.kubeconfig

    def api(self) -> Api:
        """Return a new client of its API server."""
        return Api(self.paths.pki)

    def program(self, name: str) -> Path:
        """Return the path of one of its programs, for example ``kubectl``, ``helm`` or ``kube-scheduler``.

        Raises:
            BadInputError: there is no such program.
        """
        if name not in self.programs:
            raise BadInputError(f"no program {name!r}: use one of {', '.join(sorted(self.programs))}")
        return Path(self.programs[name])

    def components(self) -> list[Component]:
        """Return all its long-running programs."""
        file = StateFile.of(self.paths)
        state = file.load()
        return [Component(name, file) for name in state.components] if state else []

    def component(self, name: str) -> Component:
        """Return one of its long-running programs, to stop, kill, pause or restart it.

        Raises:
            BadInputError: the cluster has no such component.
        """
        component = Component(name, StateFile.of(self.paths))
        component.record()
        return component

    def load_image(self, archive: Path) -> None:
        """Import an image archive into every real node."""
        for place in self.real_nodes():
            images.load_archive(archive, place.containerd_socket)

    def real_nodes(self) -> tuple[RealNode, ...]:
        """Return its real nodes."""
        return real_nodes(self.paths, self.options.real_nodes)

    def add_nodes(self, groups: tuple[FakeNodes, ...]) -> None:
        """Add fake nodes; nodes of the same names are updated."""
        with self.api() as api:
            for group in groups:
                api.apply_all(kwok.nodes(group))


def up(options: Options | None = None, *, report: Report = silent, paths: Paths | None = None) -> Cluster:
    """Start a devcluster, or return the one that runs already.

    A half-started cluster that a killed ``up`` left is taken down first; components of a running cluster
    that have ended are started again.

    Raises:
        BadInputError: an option cannot be met, or a cluster with other options runs.
        DevclusterError: the machine lacks something, something on it is in the way, or a component does not
            come up; a half-started cluster is taken down again.
    """
    wanted, places = options or Options(), paths or Paths.of()
    steps = Steps(report)
    with _locked(places):
        state = StateFile.of(places).load()
        if state and state.usable():
            return _running(Cluster(places, state.options, state.programs), wanted, steps)
        if state:
            report("a half-started or broken devcluster is here: taking it down first")
            tear_down(places, state, steps)
        return _start(places, wanted, steps)


def down(*, report: Report = silent, paths: Paths | None = None) -> bool:
    """Take the devcluster down; return False when there was none."""
    places = paths or Paths.of()
    if StateFile.of(places).load() is None:
        return False
    with _locked(places):
        state = StateFile.of(places).load()
        if state is None:
            return False
        tear_down(places, state, Steps(report))
        return True


def connect(paths: Paths | None = None) -> Cluster:
    """Return the running devcluster.

    Raises:
        DevclusterError: there is none, or it is half started.
    """
    places = paths or Paths.of()
    state = StateFile.of(places).load()
    if state is None or not state.usable():
        raise DevclusterError("no devcluster is running: start one with 'kube-synergy devcluster up'")
    return Cluster(places, state.options, state.programs)


def programs(report: Report = silent, bin_dir: Path | None = None, paths: Paths | None = None) -> dict[str, Path]:
    """Return the path of every pinned program by name, building what is not there. No cluster is needed."""
    return toolchain.locate(paths or Paths.of(), report, bin_dir)


def prepare(report: Report = silent, paths: Paths | None = None) -> None:
    """Build everything that is cached: the programs, the pause image and the base image."""
    places = paths or Paths.of()
    images.pause_image(programs(report, paths=places)["pause"], node.PAUSE_IMAGE, places, report)
    ensure_base(places, Buildah(places.images / "store"), report)


def _running(cluster: Cluster, wanted: Options, steps: Steps) -> Cluster:
    if cluster.options.same_cluster(wanted):
        for component in cluster.components():
            if not component.alive():
                with steps.step(f"{component.name} started again"):
                    component.start()
        steps.report("the devcluster is up")
        return cluster
    raise BadInputError(
        f"a devcluster with other options is running ({cluster.options.in_words()}): "
        "ask for the same, or 'kube-synergy devcluster down' first"
    )


def _start(paths: Paths, options: Options, steps: Steps) -> Cluster:
    prerequisites.check(with_go=toolchain.must_build(paths, options.bin_dir))
    with steps.step("programs"):
        found = {name: str(path) for name, path in toolchain.locate(paths, steps.report, options.bin_dir).items()}
    with steps.step("pause image"):
        pause = images.pause_image(Path(found["pause"]), node.PAUSE_IMAGE, paths, steps.report)
    network.load_kernel_modules()
    network.check_free()
    state = State(options, found, boot_id(), sysctls=network.read_sysctls())
    state.made_folders = [folder for folder in node.FIXED_FOLDERS if not Path(folder).exists()]
    file = StateFile.of(paths)
    file.save(state)
    cluster = Cluster(paths, options, found)
    try:
        _start_all(cluster, pause, steps)
    except BaseException as error:
        _keep_logs(paths)
        tear_down(paths, file.load() or state, steps)
        if isinstance(error, DevclusterError):
            raise DevclusterError(f"{error} (all logs: {paths.failed_logs})") from error
        raise
    with file.change() as state:
        state.phase = "running"
    steps.report(f"the devcluster is up after {steps.elapsed_s():.1f} s")
    return cluster


def _keep_logs(paths: Paths) -> None:
    shutil.rmtree(paths.failed_logs, ignore_errors=True)
    with suppress(OSError):
        shutil.copytree(paths.logs, paths.failed_logs)


def _start_all(cluster: Cluster, pause: Path, steps: Steps) -> None:
    paths, options = cluster.paths, cluster.options
    launch, nodes = Launch(paths, options, cluster.programs), cluster.real_nodes()
    with steps.step("network"):
        for folder in (paths.run, paths.logs, paths.config, *map(Path, node.FIXED_FOLDERS)):
            folder.mkdir(parents=True, exist_ok=True)
        listed = network.set_up([node.address for node in nodes])
        with StateFile.of(paths).change() as state:
            state.firewall = listed
    with steps.step("certificates"):
        ids = control_plane.make_identities(paths, nodes)
    with steps.step("containerd"):
        for place in nodes:
            launch.containerd(place, pause)
    with steps.step("etcd, API server"):
        launch.api_server(ids)
    with steps.step("controllers, scheduler, kubelet, proxy, DNS"):
        launch.clients(ids)
        for place in nodes:
            launch.kubelet(place, ids)
        with cluster.api() as api:
            api.apply_all([*manifests.rights(), manifests.storage_class()])
            api.apply_all(manifests.volume(paths.volumes, index) for index in range(options.volumes))
    with steps.step(f"{options.fake_node_count()} fake nodes"):
        cluster.add_nodes(options.fake_nodes)
    with steps.step(f"all nodes Ready, the real with {options.gpus} GPUs"):
        _wait_ready(cluster, 60 + options.fake_node_count() / 20)


def _wait_ready(cluster: Cluster, timeout_s: float) -> None:
    """Wait until every node is Ready, the real one with all its GPUs, and no component has ended."""
    components = cluster.components()
    real_names = {node.name for node in cluster.real_nodes()}
    expected = len(real_names) + cluster.options.fake_node_count()
    gpus = str(cluster.options.gpus * cluster.options.gpu_replicas)

    def ready(api: Api) -> bool:
        for component in components:
            if not component.alive():
                raise not_up(component, "ended")
        listed = api.get("/api/v1/nodes")["items"]
        real = [item["status"].get("allocatable", {}) for item in listed if item["metadata"]["name"] in real_names]
        with_gpus = all(allocatable.get(cluster.options.resource, "0") == gpus for allocatable in real)
        account = _default_account_exists(api)
        return account and with_gpus and len(listed) >= expected and all(map(node_ready, listed))

    with cluster.api() as api:
        all_ready = processes.wait_for(lambda: ready(api), timeout_s, 0.1)
    if not all_ready:
        raise not_up(cluster.component("kubelet"), f"did not bring {expected} nodes to Ready in {timeout_s:.0f} s")


def _default_account_exists(api: Api) -> bool:
    """Say whether pods can be made in the default namespace: they need its service account and the CA's map."""
    accounts = api.get("/api/v1/namespaces/default/serviceaccounts")["items"]
    maps = api.get("/api/v1/namespaces/default/configmaps")["items"]
    return bool(accounts) and bool(maps)


def node_ready(item: dict[str, Any]) -> bool:
    """Say whether a node object's Ready condition is true."""
    conditions = item["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


@contextmanager
def _locked(paths: Paths) -> Iterator[None]:
    try:
        lock = paths.lock_file.open("w")
    except PermissionError as error:
        raise DevclusterError("the devcluster starts containers and makes a network: run as root") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DevclusterError("another 'devcluster up' or 'down' is at work: wait for it to end") from None
        yield
