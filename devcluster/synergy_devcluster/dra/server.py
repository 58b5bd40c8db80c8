"""The driver's gRPC services: its registration with the kubelet, and DRAPlugin v1."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from synergy_devcluster.dra import kubelet_pb2 as pb
from synergy_devcluster.dra.objects import DRIVER, Object
from synergy_devcluster.dra.prepared import ClaimError, PreparedClaims

_SERVICE: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
_VERSION: Final = "v1.DRAPlugin"


class DraPlugin:
    """Answers the kubelet. `read` gives a claim by namespace and name, and the pods that it is reserved for."""

    def __init__(self, prepared: PreparedClaims, read: Callable[[str, str], tuple[Object, list[Object]]]) -> None:
        self._prepared = prepared
        self._read = read

    def prepare(
        self, request: pb.NodePrepareResourcesRequest, _context: grpc.ServicerContext
    ) -> pb.NodePrepareResourcesResponse:
        """Answer NodePrepareResources: each claim by itself."""
        return pb.NodePrepareResourcesResponse(claims={claim.uid: self._prepare(claim) for claim in request.claims})

    def _prepare(self, asked: pb.Claim) -> pb.NodePrepareResourceResponse:
        try:
            claim, pods = self._read(asked.namespace, asked.name)
            if claim["metadata"]["uid"] != asked.uid:
                raise ClaimError(f"claim {asked.name} was replaced by another of its name")
            devices = self._prepared.prepare(claim, pods)
        except (ClaimError, OSError, RuntimeError) as error:
            return pb.NodePrepareResourceResponse(error=str(error))
        return pb.NodePrepareResourceResponse(
            devices=[
                pb.Device(
                    request_names=[one.request],
                    pool_name=one.pool,
                    device_name=one.device,
                    share_id=one.share_id or None,
                )
                for one in devices
            ]
        )

    def unprepare(
        self, request: pb.NodeUnprepareResourcesRequest, _context: grpc.ServicerContext
    ) -> pb.NodeUnprepareResourcesResponse:
        """Answer NodeUnprepareResources."""
        for claim in request.claims:
            self._prepared.unprepare(claim.uid)
        done = {claim.uid: pb.NodeUnprepareResourceResponse() for claim in request.claims}
        return pb.NodeUnprepareResourcesResponse(claims=done)


def serve(plugin: DraPlugin, socket: Path) -> grpc.Server:
    """Start the driver's service on its socket."""
    methods = {
        "NodePrepareResources": _handler(plugin.prepare, pb.NodePrepareResourcesRequest),
        "NodeUnprepareResources": _handler(plugin.unprepare, pb.NodeUnprepareResourcesRequest),
    }
    return _serve(socket, _SERVICE, methods)


def serve_registration(endpoint: Path, socket: Path, report: Callable[[str], None]) -> grpc.Server:
    """Start the registration service, on a socket in the folder that the kubelet watches. `report` gets its answer."""

    def info(_request: pb.InfoRequest, _context: grpc.ServicerContext) -> pb.PluginInfo:
        return pb.PluginInfo(type="DRAPlugin", name=DRIVER, endpoint=str(endpoint), supported_versions=[_VERSION])

    def notify(status: pb.RegistrationStatus, _context: grpc.ServicerContext) -> pb.RegistrationStatusResponse:
        report("registered with the kubelet" if status.plugin_registered else f"not registered: {status.error}")
        return pb.RegistrationStatusResponse()

    methods = {
        "GetInfo": _handler(info, pb.InfoRequest),
        "NotifyRegistrationStatus": _handler(notify, pb.RegistrationStatus),
    }
    return _serve(socket, "pluginregistration.Registration", methods)


def _serve(socket: Path, service: str, methods: dict[str, Any]) -> grpc.Server:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def _handler(method: Callable[[Any, grpc.ServicerContext], Any], request: type[Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        method, request_deserializer=request.FromString, response_serializer=lambda message: message.SerializeToString()
    )
