"""The fake DRA driver: what it tells the API server and the kubelet, and what containers get."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from synergy_devcluster.dra import kubelet_pb2 as pb
from synergy_devcluster.dra import runtime
from synergy_devcluster.dra.objects import DRIVER, device_class, resource_slice, uuids_of
from synergy_devcluster.dra.prepared import ClaimError, PreparedClaims
from synergy_devcluster.dra.server import DraPlugin, serve, serve_registration
from synergy_devcluster.gpu_plugin.devices import ExclusiveGpus
from synergy_devcluster.gpu_plugin.shared import MpsGpus

UUIDS = uuids_of("node-a", 2)
NAMED = {f"gpu-{index}": uuid for index, uuid in enumerate(UUIDS)}


def claim(name: str, *devices: str) -> dict[str, Any]:
    results = [{"request": "gpus", "driver": DRIVER, "pool": "node-a", "device": one} for one in devices]
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def pod(name: str, of: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "resourceClaims": [{"name": "g", "resourceClaimName": of}],
            "containers": [{"name": "train", "resources": {"claims": [{"name": "g"}]}}, {"name": "log"}],
        },
        "status": status,
    }


def prepared(folder: Path, *, shared: bool = False) -> PreparedClaims:
    clients = folder / "clients"
    sharing = MpsGpus(UUIDS, 2, "packed", 1000, clients) if shared else ExclusiveGpus(UUIDS, clients)
    return PreparedClaims(folder / "claims", folder / "edits", NAMED, sharing, shared=shared)


def test_a_slice_has_the_nodes_gpus_by_uuid_and_taints_what_is_ill() -> None:
    made = resource_slice("node-a", UUIDS, 2, 40960, frozenset({UUIDS[1]}))
    healthy, ill = made["spec"]["devices"]
    assert made["spec"]["nodeName"] == "node-a"
    assert healthy["attributes"]["uuid"] == {"string": UUIDS[0]}
    assert (healthy["allowMultipleAllocations"], healthy.get("taints")) == (True, None)
    assert [taint["effect"] for taint in ill["taints"]] == ["NoSchedule"]
    (alone,) = resource_slice("node-a", UUIDS[:1], 1, 40960, frozenset())["spec"]["devices"]
    assert "allowMultipleAllocations" not in alone
    assert DRIVER in device_class()["spec"]["selectors"][0]["cel"]["expression"]


def test_only_the_containers_that_use_a_claim_get_its_gpus(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    claims.prepare(claim("c", "gpu-1"), [pod("w", "c")])
    (file,) = (tmp_path / "edits").iterdir()
    assert file == runtime.edits_file(tmp_path / "edits", "team", "w", "train")
    assert f"NVIDIA_VISIBLE_DEVICES={UUIDS[1]}" in json.loads(file.read_text())["env"]
    claims.unprepare("uid-c")
    claims.unprepare("uid-c")
    assert not list((tmp_path / "edits").iterdir())


def test_a_claim_of_a_template_is_known_by_the_pods_status(tmp_path: Path) -> None:
    item = pod("w", "")
    item["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimTemplateName": "t"}]
    item["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "w-g-1"}]}
    prepared(tmp_path).prepare(claim("w-g-1", "gpu-0"), [item])
    assert len(list((tmp_path / "edits").iterdir())) == 1


def test_a_device_is_prepared_once_unless_it_is_shared(tmp_path: Path) -> None:
    claims = prepared(tmp_path)
    for _ in range(2):
        claims.prepare(claim("a", "gpu-0"), [pod("a", "a")])
    with pytest.raises(ClaimError, match="device gpu-0 is in use by claim a"):
        prepared(tmp_path).prepare(claim("b", "gpu-0"), [pod("b", "b")])
    claims.unprepare("uid-a")
    claims.prepare(claim("b", "gpu-0"), [pod("b", "b")])
    shared = prepared(tmp_path / "shared", shared=True)
    for name in "ab":
        shared.prepare(claim(name, "gpu-0"), [pod(name, name)])
    env = json.loads(runtime.edits_file(tmp_path / "shared" / "edits", "team", "b", "train").read_text())["env"]
    assert "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50" in env


@pytest.mark.parametrize(("devices", "said"), [((), "has no device"), (("gpu-9",), "no device gpu-9")])
def test_a_claim_that_is_not_for_this_node_is_refused(tmp_path: Path, devices: tuple[str, ...], said: str) -> None:
    with pytest.raises(ClaimError, match=said):
        prepared(tmp_path).prepare(claim("c", *devices), [])


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[grpc.Channel]:
    """The driver's socket, as the kubelet opens it. Claim `gone` cannot be read."""

    def read(namespace: str, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if name == "gone":
            raise OSError("the API server is away")
        return claim(name, "gpu-0"), [pod("w", name)]

    server = serve(DraPlugin(prepared(tmp_path), read), tmp_path / "dra.sock")
    yield grpc.insecure_channel(f"unix://{tmp_path / 'dra.sock'}")
    server.stop(None).wait()


def call(channel: grpc.Channel, method: str, request: Any, answer: type[Any]) -> Any:
    return channel.unary_unary(
        method, request_serializer=lambda message: message.SerializeToString(), response_deserializer=answer.FromString
    )(request, timeout=5, wait_for_ready=True)


def test_the_kubelet_gets_an_answer_for_each_claim(channel: grpc.Channel) -> None:
    service = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
    asked = [pb.Claim(namespace="team", name=name, uid=f"uid-{name}") for name in ("c", "gone", "d")]
    asked.append(pb.Claim(namespace="team", name="c", uid="another"))
    request = pb.NodePrepareResourcesRequest(claims=asked)
    found = call(channel, f"{service}NodePrepareResources", request, pb.NodePrepareResourcesResponse).claims
    (device,) = found["uid-c"].devices
    assert (device.pool_name, device.device_name, list(device.request_names)) == ("node-a", "gpu-0", ["gpus"])
    assert "is away" in found["uid-gone"].error
    assert "in use by claim c" in found["uid-d"].error
    assert "replaced" in found["another"].error
    request = pb.NodeUnprepareResourcesRequest(claims=asked)
    done = call(channel, f"{service}NodeUnprepareResources", request, pb.NodeUnprepareResourcesResponse).claims
    assert {uid: one.error for uid, one in done.items()} == dict.fromkeys(("uid-c", "uid-gone", "uid-d", "another"), "")


def test_the_kubelet_learns_where_the_driver_is_and_says_what_became_of_it(tmp_path: Path) -> None:
    said: list[str] = []
    server = serve_registration(tmp_path / "dra.sock", tmp_path / "reg.sock", said.append)
    with grpc.insecure_channel(f"unix://{tmp_path / 'reg.sock'}") as opened:
        service = "/pluginregistration.Registration/"
        info = call(opened, f"{service}GetInfo", pb.InfoRequest(), pb.PluginInfo)
        for status in (pb.RegistrationStatus(plugin_registered=True), pb.RegistrationStatus(error="no")):
            call(opened, f"{service}NotifyRegistrationStatus", status, pb.RegistrationStatusResponse)
    server.stop(None).wait()
    assert (info.type, info.name, list(info.supported_versions)) == ("DRAPlugin", DRIVER, ["v1.DRAPlugin"])
    assert said == ["registered with the kubelet", "not registered: no"]


@pytest.mark.parametrize("known", [True, False])
def test_the_runtime_edits_the_bundle_of_a_container_with_a_claim(tmp_path: Path, known: bool) -> None:
    edits, bundle = tmp_path / "edits", tmp_path / "bundle"
    edits.mkdir()
    bundle.mkdir()
    annotations = {"sandbox-namespace": "team", "sandbox-name": "w", "container-name": "train" if known else "log"}
    config = {
        "process": {"env": ["A=1"]},
        "annotations": {f"io.kubernetes.cri.{key}": value for key, value in annotations.items()},
    }
    (bundle / "config.json").write_text(json.dumps(config))
    mount = {"hostPath": "/h", "containerPath": "/c", "options": ["rbind", "ro"]}
    runtime.edits_file(edits, "team", "w", "train").write_text(json.dumps({"env": ["GPU=x"], "mounts": [mount]}))
    program, script = tmp_path / "edit", tmp_path / "runc"
    program.write_bytes(Path(runtime.__file__).read_bytes())
    program.chmod(0o755)
    script.write_text(runtime.script(edits, program).replace("exec runc", "exec echo"))
    words = ["--root", "/r", "create", "--bundle", str(bundle), "id"]
    ran = subprocess.run(["sh", str(script), *words], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == words
    found = json.loads((bundle / "config.json").read_text())
    assert found["process"]["env"] == (["A=1", "GPU=x"] if known else ["A=1"])
    wanted = [{"destination": "/c", "source": "/h", "type": "bind", "options": ["rbind", "ro"]}]
    assert found.get("mounts", []) == (wanted if known else [])


def test_the_runtime_does_not_look_at_bundles_where_no_claim_is_prepared(tmp_path: Path) -> None:
    script = tmp_path / "runc"
    script.write_text(runtime.script(tmp_path / "none", Path("/does/not/exist")).replace("exec runc", "exec echo"))
    ran = subprocess.run(["sh", str(script), "create", "--bundle", "b"], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["create", "--bundle", "b"]
