"""The device plugin's gRPC service and its registration with the kubelet."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from synergy_devcluster.gpu_plugin import deviceplugin_pb2 as pb
from synergy_devcluster.gpu_plugin.devices import Sharing

API_VERSION = "v1beta1"
KUBELET_SOCKET = "kubelet.sock"
_WAIT_S = 0.5


class DevicePlugin:
    """Answers the kubelet for one resource. Thread-safe: the kubelet's calls come from a pool."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._changed = threading.Condition()
        self._unhealthy: frozenset[str] = frozenset()
        self._stopped = False

    def set_unhealthy(self, uuids: frozenset[str]) -> None:
        """Take over which GPUs are unhealthy; every watching kubelet gets a change at once."""
        with self._changed:
            if uuids != self._unhealthy:
                self._unhealthy = uuids
                self._changed.notify_all()

    def stop(self) -> None:
        """End every open ListAndWatch stream."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def get_options(self, _request: pb.Empty, _context: grpc.ServicerContext) -> pb.DevicePluginOptions:
        """Answer GetDevicePluginOptions."""
        return self.options()

    def options(self) -> pb.DevicePluginOptions:
        """Return what this plugin wants to be asked."""
        return pb.DevicePluginOptions(get_preferred_allocation_available=self._sharing.prefers)

    def list_and_watch(self, _request: pb.Empty, context: grpc.ServicerContext) -> Iterator[pb.ListAndWatchResponse]:
        """Send all devices now and again after each change of health."""
        sent: frozenset[str] | None = None
        while context.is_active():
            unhealthy = self._wait_other_than(sent)
            if unhealthy is None:
                return
            if unhealthy != sent:
                sent = unhealthy
                yield self._devices(unhealthy)

    def _wait_other_than(self, sent: frozenset[str] | None) -> frozenset[str] | None:
        """Wait a little for a change; return which GPUs are unhealthy now, or None when the plugin has stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._unhealthy != sent, _WAIT_S)
            return None if self._stopped else self._unhealthy

    def _devices(self, unhealthy: frozenset[str]) -> pb.ListAndWatchResponse:
        return pb.ListAndWatchResponse(
            devices=[
                pb.Device(ID=device.device_id, health="Healthy" if device.healthy else "Unhealthy")
                for device in self._sharing.devices(unhealthy)
            ]
        )

    def get_preferred_allocation(
        self, request: pb.PreferredAllocationRequest, _context: grpc.ServicerContext
    ) -> pb.PreferredAllocationResponse:
        """Answer GetPreferredAllocation for each container."""
        return pb.PreferredAllocationResponse(
            container_responses=[
                pb.ContainerPreferredAllocationResponse(
                    deviceIDs=self._sharing.preferred(
                        item.available_deviceIDs, item.must_include_deviceIDs, item.allocation_size
                    )
                )
                for item in request.container_requests
            ]
        )

    def allocate(self, request: pb.AllocateRequest, context: grpc.ServicerContext) -> pb.AllocateResponse:
        """Answer Allocate: the environment and the mounts of each container."""
        mounts = [
            pb.Mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
            for mount in self._sharing.mounts()
        ]
        try:
            responses = [
                pb.ContainerAllocateResponse(envs=self._sharing.environment(item.devices_ids), mounts=mounts)
                for item in request.container_requests
            ]
        except KeyError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no such device: {error.args[0]}")
        return pb.AllocateResponse(container_responses=responses)

    def pre_start(self, _request: pb.Empty, _context: grpc.ServicerContext) -> pb.Empty:
        """Answer PreStartContainer, which this plugin does not ask for."""
        return pb.Empty()


def serve(plugin: DevicePlugin, socket: Path) -> grpc.Server:
    """Start the plugin's gRPC server on a unix socket, replacing a stale one."""
    socket.unlink(missing_ok=True)
    server = grpc.server(ThreadPoolExecutor(max_workers=8))
    methods = {
        "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(plugin.get_options, **_codec(pb.Empty)),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(plugin.list_and_watch, **_codec(pb.Empty)),
        "GetPreferredAllocation": grpc.unary_unary_rpc_method_handler(
            plugin.get_preferred_allocation, **_codec(pb.PreferredAllocationRequest)
        ),
        "Allocate": grpc.unary_unary_rpc_method_handler(plugin.allocate, **_codec(pb.AllocateRequest)),
        "PreStartContainer": grpc.unary_unary_rpc_method_handler(plugin.pre_start, **_codec(pb.Empty)),
    }
    handler = grpc.method_handlers_generic_handler(f"{API_VERSION}.DevicePlugin", methods)
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix://{socket}")
    server.start()
    return server


def _codec(request: type[Any]) -> dict[str, Any]:
    return {
        "request_deserializer": request.FromString,
        "response_serializer": lambda message: message.SerializeToString(),
    }


def register(folder: Path, endpoint: str, resource: str, options: pb.DevicePluginOptions, timeout_s: float = 5) -> None:
    """Register the plugin's socket ``endpoint`` with the kubelet whose sockets are in ``folder``.

    Raises:
        grpc.RpcError: the kubelet does not answer or refuses.
    """
    request = pb.RegisterRequest(version=API_VERSION, endpoint=endpoint, resource_name=resource, options=options)
    with grpc.insecure_channel(f"unix://{folder / KUBELET_SOCKET}") as channel:
        call = channel.unary_unary(
            f"/{API_VERSION}.Registration/Register",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=pb.Empty.FromString,
        )
        call(request, timeout=timeout_s, wait_for_ready=True)
