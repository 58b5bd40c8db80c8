"""The health of the real nodes' fake GPUs, changed on command."""

from dataclasses import dataclass, replace

from synergy_devcluster.cluster import Cluster
from synergy_devcluster.control_plane import components
from synergy_devcluster.control_plane.api import Api
from synergy_devcluster.dra.objects import SLICES, slice_name
from synergy_devcluster.errors import BadInputError, DevclusterError
from synergy_devcluster.gpu_plugin.devices import gpu_uuids, read_unhealthy, write_unhealthy
from synergy_devcluster.node.node import dra_driver, gpu_labels, gpu_plugin
from synergy_devcluster.options import Options
from synergy_devcluster.programs import processes
from synergy_devcluster.real_nodes import RealNode
from synergy_devcluster.state import StateFile


@dataclass(frozen=True)
class Gpu:
    """One fake GPU of a real node."""

    uuid: str
    node: str
    healthy: bool


def listed(cluster: Cluster) -> list[Gpu]:
    """Return the GPUs of every real node, in the order of their index."""
    return [gpu for node in cluster.real_nodes() for gpu in _of(node, cluster.options.gpus)]


def set_health(cluster: Cluster, uuid: str, *, healthy: bool) -> None:
    """Make a GPU healthy or unhealthy; the node's allocatable follows within about 2 s.

    Raises:
        BadInputError: no real node has such a GPU.
    """
    for node in cluster.real_nodes():
        gpus = _of(node, cluster.options.gpus)
        if uuid in {gpu.uuid for gpu in gpus}:
            unhealthy = {gpu.uuid for gpu in gpus if not gpu.healthy} - {uuid}
            write_unhealthy(node.gpu_health, unhealthy if healthy else unhealthy | {uuid})
            return
    known = ", ".join(gpu.uuid for gpu in listed(cluster)) or "none, there is no GPU"
    raise BadInputError(f"no GPU {uuid!r} on a real node: use one of {known}")


def offer(cluster: Cluster, gpus: Options) -> Cluster:
    """Give the real nodes the GPUs that `gpus` describes, its other fields left alone, with new plugins and labels; the
    cluster as it is then. Pods that hold GPUs now keep what they have.

    Raises:
        DevclusterError: the kubelets do not show the new GPUs within a minute.
    """
    names = ("gpus", "gpu", "gpu_replicas", "gpu_preference", "gpu_renamed")
    options = replace(cluster.options, **{name: getattr(gpus, name) for name in names})
    for place in cluster.real_nodes():
        plugin = cluster.component(f"gpu-plugin{place.suffix}")
        plugin.stop()
        with plugin.file.change() as state:
            argv = state.components[plugin.name].argv
            inside = argv[: argv.index("--") + 1]
            state.components[plugin.name].argv = [*inside, *gpu_plugin(place, options)]
            state.options = options
        plugin.start()
    with cluster.api() as api:
        for place in cluster.real_nodes():
            labels = gpu_labels(options)
            api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": place.name, "labels": labels}})

        def shown() -> bool:
            return all(_shows(api, place, options) for place in cluster.real_nodes())

        if not processes.wait_for(shown, 60, 0.1):
            raise DevclusterError(f"the real nodes do not show {options.gpus} GPUs as {options.resource}")
    return replace(cluster, options=options)


def offer_dra(cluster: Cluster, count: int, replicas: int = 1) -> None:
    """Give the real nodes GPUs of DRA beside those of the device plugin; 0 takes them away. With `replicas` above 1
    several claims may have one GPU.

    Raises:
        DevclusterError: the ResourceSlices are not there within a minute.
    """
    file = StateFile.of(cluster.paths)
    for place in cluster.real_nodes():
        name = f"dra-driver{place.suffix}"
        if name in {component.name for component in cluster.components()}:
            cluster.component(name).stop()
            with file.change() as state:
                del state.components[name]
        if count:
            plugin = cluster.component(f"gpu-plugin{place.suffix}").record().argv
            inside = plugin[: plugin.index("--") + 1]
            driver = dra_driver(place, cluster.options, count, replicas)
            components.add(file, cluster.paths, name, [*inside, *driver])
    with cluster.api() as api:

        def shown() -> bool:
            listed = {item["metadata"]["name"]: item["spec"] for item in api.get(SLICES)["items"]}
            found = [len(listed.get(slice_name(place.name), {}).get("devices", ())) for place in cluster.real_nodes()]
            return found == [count] * len(found)

        if not processes.wait_for(shown, 60, 0.1):
            raise DevclusterError(f"the ResourceSlices of the real nodes do not show {count} GPUs")


def _shows(api: Api, place: RealNode, options: Options) -> bool:
    found = api.get(f"/api/v1/nodes/{place.name}")["status"]["allocatable"].get(options.resource, "0")
    return bool(int(found) == options.gpu_replicas * sum(gpu.healthy for gpu in _of(place, options.gpus)))


def _of(node: RealNode, count: int) -> list[Gpu]:
    unhealthy = read_unhealthy(node.gpu_health)
    return [Gpu(uuid, node.name, uuid not in unhealthy) for uuid in gpu_uuids(node.name, count)]
