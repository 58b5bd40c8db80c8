"""The fake GPU device plugin, against a kubelet's side of the API over real unix sockets."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from synergy_devcluster.gpu_plugin import deviceplugin_pb2 as pb
from synergy_devcluster.gpu_plugin.devices import ExclusiveGpus, gpu_uuids, read_unhealthy, write_unhealthy
from synergy_devcluster.gpu_plugin.runner import Settings, run
from synergy_devcluster.programs.processes import wait_for

RESOURCE = "nvidia.com/gpu"
UUIDS = gpu_uuids("node-a", 3)


@dataclass
class Kubelet:
    """The kubelet's registration service, which keeps what was registered."""

    folder: Path
    registered: list[pb.RegisterRequest] = field(default_factory=list)
    refuse: bool = False
    refused: int = 0
    server: grpc.Server | None = None

    def start(self) -> None:
        """Open the socket anew, as a kubelet that starts: every other socket in the folder is deleted first."""
        for socket in self.folder.glob("*.sock"):
            socket.unlink()
        method = grpc.unary_unary_rpc_method_handler(
            self._register, pb.RegisterRequest.FromString, lambda message: message.SerializeToString()
        )
        self.server = grpc.server(ThreadPoolExecutor(2))
        handler = grpc.method_handlers_generic_handler("v1beta1.Registration", {"Register": method})
        self.server.add_generic_rpc_handlers((handler,))
        self.server.add_insecure_port(f"unix://{self.folder / 'kubelet.sock'}")
        self.server.start()

    def stop(self) -> None:
        """Close the socket."""
        if self.server:
            self.server.stop(None).wait()

    def _register(self, request: pb.RegisterRequest, context: grpc.ServicerContext) -> pb.Empty:
        if self.refuse:
            self.refused += 1
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now")
        self.registered.append(request)
        return pb.Empty()


@dataclass(frozen=True)
class Plugin:
    """A running plugin and the kubelet it talks to."""

    kubelet: Kubelet
    health: Path

    def channel(self) -> grpc.Channel:
        """Connect to the plugin's socket, as the kubelet does."""
        return grpc.insecure_channel(f"unix://{self.kubelet.folder / 'gpu.sock'}")


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    """A plugin with three GPUs that has registered with a kubelet."""
    kubelet = Kubelet(tmp_path)
    kubelet.start()
    health = tmp_path / "unhealthy.json"
    stop = threading.Event()
    settings = Settings(tmp_path, RESOURCE, "gpu.sock", health)
    thread = threading.Thread(target=run, args=(settings, ExclusiveGpus(UUIDS), stop))
    thread.start()
    assert wait_for(lambda: len(kubelet.registered) == 1, 10)
    yield Plugin(kubelet, health)
    stop.set()
    thread.join(10)
    kubelet.stop()
    assert not thread.is_alive()


def call(channel: grpc.Channel, method: str, request: object, answer: type) -> object:
    """Call one method of the plugin that answers once."""
    stub = channel.unary_unary(
        f"/v1beta1.DevicePlugin/{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,  # type: ignore[attr-defined]
    )
    return stub(request, timeout=5)


def watch(channel: grpc.Channel) -> Iterator[dict[str, str]]:
    """Yield each list of devices the plugin sends, as health by device id."""
    stub = channel.unary_stream(
        "/v1beta1.DevicePlugin/ListAndWatch",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=pb.ListAndWatchResponse.FromString,
    )
    for response in stub(pb.Empty(), timeout=20):
        yield {device.ID: device.health for device in response.devices}


def test_it_registers_its_socket_under_the_resource(plugin: Plugin) -> None:
    (request,) = plugin.kubelet.registered
    assert (request.version, request.endpoint, request.resource_name) == ("v1beta1", "gpu.sock", RESOURCE)
    assert not request.options.get_preferred_allocation_available


def test_every_gpu_is_listed_and_a_change_of_health_is_sent(plugin: Plugin) -> None:
    with plugin.channel() as channel:
        seen = watch(channel)
        assert next(seen) == dict.fromkeys(UUIDS, "Healthy")
        write_unhealthy(plugin.health, [UUIDS[1]])
        assert next(seen) == {UUIDS[0]: "Healthy", UUIDS[1]: "Unhealthy", UUIDS[2]: "Healthy"}
        write_unhealthy(plugin.health, [])
        assert next(seen) == dict.fromkeys(UUIDS, "Healthy")


def test_a_damaged_health_file_changes_nothing(plugin: Plugin) -> None:
    write_unhealthy(plugin.health, [UUIDS[0]])
    with plugin.channel() as channel:
        seen = watch(channel)
        assert next(filter(lambda health: health[UUIDS[0]] == "Unhealthy", seen))
        plugin.health.write_text('{"not": "a list"}')
        write_unhealthy(plugin.health.with_name("other"), [])
        plugin.health.write_text(f'["{UUIDS[2]}"]')
        assert next(seen) == {UUIDS[0]: "Healthy", UUIDS[1]: "Healthy", UUIDS[2]: "Unhealthy"}


def test_a_container_is_told_its_gpus(plugin: Plugin) -> None:
    containers = [pb.ContainerAllocateRequest(devices_ids=ids) for ids in ([UUIDS[2], UUIDS[0]], [UUIDS[1]])]
    with plugin.channel() as channel:
        answer = call(channel, "Allocate", pb.AllocateRequest(container_requests=containers), pb.AllocateResponse)
    assert isinstance(answer, pb.AllocateResponse)
    told = [dict(item.envs) for item in answer.container_responses]
    assert told == [
        {"NVIDIA_VISIBLE_DEVICES": f"{UUIDS[0]},{UUIDS[2]}"},
        {"NVIDIA_VISIBLE_DEVICES": UUIDS[1]},
    ]


def test_a_device_of_another_node_is_refused_by_name(plugin: Plugin) -> None:
    request = pb.AllocateRequest(container_requests=[pb.ContainerAllocateRequest(devices_ids=["GPU-foreign"])])
    with plugin.channel() as channel, pytest.raises(grpc.RpcError, match="no such device: GPU-foreign"):
        call(channel, "Allocate", request, pb.AllocateResponse)


def test_the_other_methods_answer(plugin: Plugin) -> None:
    asked = pb.ContainerPreferredAllocationRequest(
        available_deviceIDs=[UUIDS[2], UUIDS[1], UUIDS[0]], must_include_deviceIDs=[UUIDS[1]], allocation_size=2
    )
    with plugin.channel() as channel:
        assert call(channel, "GetDevicePluginOptions", pb.Empty(), pb.DevicePluginOptions) == pb.DevicePluginOptions()
        assert call(channel, "PreStartContainer", pb.Empty(), pb.Empty) == pb.Empty()
        answer = call(
            channel,
            "GetPreferredAllocation",
            pb.PreferredAllocationRequest(container_requests=[asked]),
            pb.PreferredAllocationResponse,
        )
    assert isinstance(answer, pb.PreferredAllocationResponse)
    assert list(answer.container_responses[0].deviceIDs) == [UUIDS[1], UUIDS[0]]


def test_it_registers_again_after_a_kubelet_restart(plugin: Plugin) -> None:
    plugin.kubelet.stop()
    plugin.kubelet.start()
    assert wait_for(lambda: len(plugin.kubelet.registered) == 2, 10)
    with plugin.channel() as channel:
        assert next(watch(channel)) == dict.fromkeys(UUIDS, "Healthy")


def test_a_refused_registration_is_tried_again(plugin: Plugin) -> None:
    plugin.kubelet.stop()
    plugin.kubelet.refuse = True
    plugin.kubelet.start()
    assert wait_for(lambda: plugin.kubelet.refused > 0, 10)
    plugin.kubelet.refuse = False
    assert wait_for(lambda: len(plugin.kubelet.registered) == 2, 10)


def test_uuids_are_stable_and_of_their_node() -> None:
    assert gpu_uuids("node-a", 3) == UUIDS
    assert gpu_uuids("node-a", 4)[:3] == UUIDS
    assert not set(gpu_uuids("node-b", 3)) & set(UUIDS)
    assert all(uuid.startswith("GPU-") and len(uuid) == 40 for uuid in UUIDS)


@pytest.mark.parametrize("text", ["{}", "[1]", "x"])
def test_a_health_file_has_to_be_a_list_of_uuids(tmp_path: Path, text: str) -> None:
    (tmp_path / "health").write_text(text)
    with pytest.raises(ValueError, match=r"health|Expecting"):
        read_unhealthy(tmp_path / "health")
    assert read_unhealthy(tmp_path / "missing") == frozenset()
