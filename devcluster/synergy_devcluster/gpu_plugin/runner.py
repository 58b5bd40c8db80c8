"""The plugin's life: serve, register, follow the health file, and register again after a kubelet restart."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from synergy_devcluster.gpu_plugin.devices import Sharing, read_unhealthy
from synergy_devcluster.gpu_plugin.server import KUBELET_SOCKET, DevicePlugin, register, serve

LOG = logging.getLogger("gpu-plugin")
POLL_S = 0.2
SocketId = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """Where the plugin meets the kubelet and its operator."""

    folder: Path
    """The kubelet's device-plugins folder."""
    resource: str
    endpoint: str
    health_file: Path


def run(settings: Settings, sharing: Sharing, stop: threading.Event) -> None:
    """Serve until ``stop`` is set.

    A kubelet that starts deletes every socket in the folder, so a new kubelet socket, or our own socket
    gone, means: serve afresh and register again.
    """
    while not stop.is_set():
        kubelet = _identity(settings.folder / KUBELET_SOCKET)
        if kubelet is None:
            stop.wait(POLL_S)
            continue
        plugin = DevicePlugin(sharing)
        _follow_health(plugin, settings.health_file)
        server = serve(plugin, settings.folder / settings.endpoint)
        try:
            register(settings.folder, settings.endpoint, settings.resource, plugin.options())
            LOG.info("registered %s with the kubelet", settings.resource)
            _until_changed(settings, plugin, kubelet, stop)
        except grpc.RpcError as error:
            LOG.warning("the kubelet did not take the registration: %s", error)
            stop.wait(POLL_S)
        finally:
            plugin.stop()
            server.stop(grace=1).wait()


def _until_changed(settings: Settings, plugin: DevicePlugin, kubelet: SocketId, stop: threading.Event) -> None:
    own: Callable[[], SocketId | None] = lambda: _identity(settings.folder / settings.endpoint)  # noqa: E731
    while not stop.wait(POLL_S) and own() and _identity(settings.folder / KUBELET_SOCKET) == kubelet:
        _follow_health(plugin, settings.health_file)


def _follow_health(plugin: DevicePlugin, path: Path) -> None:
    try:
        plugin.set_unhealthy(read_unhealthy(path))
    except ValueError as error:
        LOG.warning("health file ignored: %s", error)


def _identity(path: Path) -> SocketId | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns
