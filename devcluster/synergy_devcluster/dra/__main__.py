"""Run the driver of one node: ``python -m synergy_devcluster.dra --node NAME --gpus N ...``."""

import argparse
import http.client
import logging
import signal
import sys
import threading
from pathlib import Path

from synergy_devcluster.control_plane.api import Api, ApiError
from synergy_devcluster.dra.objects import (
    CONTENT,
    DRIVER,
    SLICES,
    Object,
    device_class,
    device_name,
    resource_slice,
    slice_name,
    uuids_of,
)
from synergy_devcluster.dra.prepared import PreparedClaims
from synergy_devcluster.dra.server import DraPlugin, serve, serve_registration
from synergy_devcluster.errors import DevclusterError
from synergy_devcluster.gpu_plugin.devices import ExclusiveGpus, Sharing, prepare, read_unhealthy
from synergy_devcluster.gpu_plugin.shared import MpsGpus

LOG = logging.getLogger("dra-driver")
_POLL_S = 0.5


def main(arguments: list[str] | None = None) -> None:
    """Read the flags and serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="dra-driver", description="offer fake GPUs of DRA on one node")
    parser.add_argument("--node", required=True, help="node name, from which the GPUs' UUIDs are derived")
    parser.add_argument("--gpus", required=True, type=int, help="number of GPUs")
    parser.add_argument("--replicas", type=int, default=1, help="clients of one GPU; 1: GPUs are not shared")
    parser.add_argument("--memory-mib", type=int, default=16384, help="memory of one GPU (default %(default)s)")
    parser.add_argument("--pki", type=Path, required=True, help="the administrator's certificates")
    parser.add_argument("--health-file", type=Path, required=True, help="JSON list of unhealthy GPUs' UUIDs")
    parser.add_argument("--state", type=Path, required=True, help="folder for prepared claims")
    parser.add_argument("--edits", type=Path, required=True, help="folder where the container runtime looks for edits")
    parser.add_argument("--clients-folder", type=Path, required=True, help="host folder that the GPUs' clients see")
    parser.add_argument("--kubelet", type=Path, default=Path("/var/lib/kubelet"), help="the kubelet's folder")
    flags = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    uuids = uuids_of(flags.node, flags.gpus)
    prepare(flags.clients_folder, uuids)
    sharing: Sharing = ExclusiveGpus(uuids, flags.clients_folder)
    if flags.replicas > 1:
        sharing = MpsGpus(uuids, flags.replicas, "packed", flags.memory_mib, flags.clients_folder)
    named = {device_name(index): uuid for index, uuid in enumerate(uuids)}
    prepared = PreparedClaims(flags.state, flags.edits, named, sharing, shared=flags.replicas > 1)
    endpoint = flags.kubelet / "plugins" / DRIVER / "dra.sock"
    servers = [
        serve(DraPlugin(prepared, lambda namespace, name: _read(flags.pki, namespace, name)), endpoint),
        serve_registration(endpoint, flags.kubelet / "plugins_registry" / f"{DRIVER}-reg.sock", LOG.info),
    ]
    try:
        with Api(flags.pki) as api:
            while not stop.wait(_POLL_S):
                unhealthy = read_unhealthy(flags.health_file)
                _publish(api, resource_slice(flags.node, uuids, flags.replicas, flags.memory_mib, unhealthy))
            api.delete(f"{SLICES}/{slice_name(flags.node)}")
    finally:
        for server in servers:
            server.stop(grace=1).wait()


def _read(pki: Path, namespace: str, name: str) -> tuple[Object, list[Object]]:
    """The claim, and the pods that it is reserved for."""
    with Api(pki) as api:
        claim: Object = api.get(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}")
        reserved = claim.get("status", {}).get("reservedFor") or []
        pods = [one["name"] for one in reserved if one["resource"] == "pods"]
        return claim, [api.get(f"/api/v1/namespaces/{namespace}/pods/{pod}") for pod in pods]


def _publish(api: Api, wanted: Object) -> None:
    """Publish the class and the slice, unless they are there: a kubelet that starts removes the slices of its node."""
    try:
        found = api.get(f"{SLICES}/{wanted['metadata']['name']}")
        if (found["metadata"].get("annotations") or {}).get(CONTENT) == wanted["metadata"]["annotations"][CONTENT]:
            return
    except ApiError as error:
        if error.status != http.HTTPStatus.NOT_FOUND:
            LOG.warning("the ResourceSlice cannot be read: %s", error)
            return
    except (OSError, http.client.HTTPException) as error:
        LOG.warning("the API server cannot be reached: %s", error)
        return
    try:
        api.apply_all([device_class(), wanted])
        LOG.info("published %s GPUs", len(wanted["spec"]["devices"]))
    except (OSError, http.client.HTTPException, DevclusterError) as error:
        LOG.warning("the ResourceSlice was not written: %s", error)


if __name__ == "__main__":
    main()
