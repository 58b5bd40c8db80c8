"""A real node: containerd and kubelet in a mount namespace of their own.

Their fixed folders (/var/lib/kubelet, /run/containerd, pod logs) are folders of the cluster's state there. Nothing of
theirs, mounts included, stays when the last process is gone.
"""

import json
import os
import sys
from pathlib import Path

import yaml

from synergy_devcluster import network
from synergy_devcluster.control_plane.command_lines import Argv, Identities
from synergy_devcluster.dra import runtime
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type, node_labels
from synergy_devcluster.options import Options
from synergy_devcluster.real_nodes import RealNode

REAL_LABEL = "devcluster.kube-synergy.dev/real"
PAUSE_IMAGE = "localhost/kube-synergy-pause:1"
CGROUP_MOUNTS = Path("/sys/fs/cgroup")
FIXED_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/run/containerd", "/var/log/pods", "/var/log/containers")
"""What kubelet, containerd and the network plugins use whatever their configuration says."""


def namespace(node: RealNode, pause: str) -> Argv:
    """A process that makes the node's mount namespace and holds it open."""
    for folder in FIXED_FOLDERS:
        node.private(folder).mkdir(parents=True, exist_ok=True)
    binds = [f"mount --bind {node.private(folder)} {folder}" for folder in FIXED_FOLDERS]
    script = " && ".join(["mount --make-rshared /", *binds, f"exec {pause}"])
    return ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", script]


def inside(holder_pid: int, argv: Argv) -> Argv:
    """Run a program inside the node's mount namespace (nsenter becomes the program, so its pid is the program's)."""
    return ["nsenter", f"--mount=/proc/{holder_pid}/ns/mnt", "--", *argv]


def cgroup_folders(cgroup: str) -> list[Path]:
    """Return the folders of a control group: one on cgroup v2, one in every mounted hierarchy on v1."""
    if (CGROUP_MOUNTS / "cgroup.controllers").exists():
        return [CGROUP_MOUNTS / cgroup.strip("/")]
    hierarchies = [path for path in CGROUP_MOUNTS.iterdir() if path.is_dir() and not path.is_symlink()]
    return [path / cgroup.strip("/") for path in sorted(hierarchies) if (path / "cgroup.procs").exists()]


def make_cgroups(node: RealNode) -> None:
    """Make the node's control groups; a new cpuset needs the cores and memory nodes that it may use."""
    for folder in [*cgroup_folders(node.paths.cgroup), *cgroup_folders(node.cgroup)]:
        folder.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (folder / name).exists():
                (folder / name).write_text((folder.parent / name).read_text(encoding="utf-8"), encoding="utf-8")


def containerd(node: RealNode, program: str = "containerd") -> Argv:
    """containerd with no registry to pull from: every image is loaded by hand."""
    settings = node.root / "containerd"
    mirrors = settings / "registries" / "_default"
    mirrors.mkdir(parents=True, exist_ok=True)
    (mirrors / "hosts.toml").write_text('server = "http://127.0.0.1:1"\n', encoding="utf-8")
    plugins = settings / "cni"
    plugins.mkdir(exist_ok=True)
    (plugins / "10-bridge.conflist").write_text(json.dumps(_cni(node), indent=1), encoding="utf-8")
    config = settings / "config.toml"
    config.write_text(
        f"""version = 2
root = "{settings / "data"}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{node.containerd_socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_unprivileged_ports = true
  max_concurrent_downloads = 1
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{plugins}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{settings / "registries"}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{_runc(node, settings)}"
""",
        encoding="utf-8",
    )
    return [program, f"--config={config}", "--log-level=warn"]


def _runc(node: RealNode, settings: Path) -> Path:
    """runc that applies the edits of the node's DRA driver."""
    program, script = settings / "container-edits", settings / "runc"
    program.write_bytes(Path(runtime.__file__).read_bytes())
    script.write_text(runtime.script(node.edits, program), encoding="utf-8")
    for made in (program, script):
        made.chmod(0o755)
    return script


def _cni(node: RealNode) -> dict[str, object]:
    first, last = node.pod_addresses
    return {
        "cniVersion": "0.4.0",
        "name": "devcluster",
        "plugins": [
            {
                "type": "bridge",
                "bridge": network.BRIDGE,
                "isGateway": True,
                "ipMasq": False,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(node.root / "addresses"),
                    "ranges": [
                        [
                            {
                                "subnet": network.POD_RANGE,
                                "rangeStart": first,
                                "rangeEnd": last,
                                "gateway": network.NODE_ADDRESS,
                            }
                        ]
                    ],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def kubelet(program: str, ids: Identities, node: RealNode, options: Options) -> Argv:
    """kubelet on cgroup v1, with the settings that a machine without CAP_SYS_RESOURCE needs."""
    config = node.paths.config / f"kubelet{node.suffix}.yaml"
    content = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzPort": node.health_port,
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": str(ids.authority.certificate)},
            "webhook": {"enabled": True},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(ids.kubelet_server.certificate),
        "tlsPrivateKeyFile": str(ids.kubelet_server.key),
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup,
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "resolvConf": "",
        "clusterDNS": [network.NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        "enforceNodeAllocatable": ["pods"],
        "systemReserved": reserved_for_the_others(options.real_nodes),
        # a change of the fake GPUs shows after 2 s instead of 10
        "nodeStatusUpdateFrequency": "2s",
        "maxPods": 200,
        "serializeImagePulls": False,
        # images come by hand, and the disk is the machine's own: never delete, never evict for it
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    labels = {
        REAL_LABEL: "true",
        **gpu_labels(options),
    }
    return [
        program,
        f"--config={config}",
        f"--kubeconfig={ids.kubeconfigs[f'kubelet{node.suffix}']}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        "--node-labels=" + ",".join(f"{name}={value}" for name, value in labels.items()),
    ]


def gpu_plugin(node: RealNode, options: Options) -> Argv:
    """The device plugin of a node's GPUs."""
    flags = [f"--node={node.name}", f"--gpus={options.gpus}", f"--health-file={node.gpu_health}"]
    flags += [f"--clients-folder={node.gpu_clients}"]
    if options.gpu_replicas > 1:
        flags += [f"--replicas={options.gpu_replicas}", f"--preference={options.gpu_preference}"]
        flags += [f"--memory-mib={gpu_type(options.gpu).memory_mib}", f"--resource={options.resource}"]
    return [sys.executable, "-m", "synergy_devcluster.gpu_plugin", *flags]


def dra_driver(node: RealNode, options: Options, count: int, replicas: int) -> Argv:
    """The driver of a node's GPUs of DRA."""
    flags = [f"--node={node.name}", f"--gpus={count}", f"--replicas={replicas}"]
    flags += [f"--memory-mib={gpu_type(options.gpu).memory_mib}", f"--pki={node.paths.pki}"]
    flags += [f"--health-file={node.gpu_health}", f"--state={node.dra / 'claims'}", f"--edits={node.edits}"]
    flags += [f"--clients-folder={node.gpu_clients}"]
    return [sys.executable, "-m", "synergy_devcluster.dra", *flags]


def gpu_labels(options: Options) -> dict[str, str]:
    """What GPU feature discovery would label a real node with."""
    return node_labels(gpu_type(options.gpu), options.gpus, options.gpu_replicas, renamed=options.gpu_renamed)


def reserved_for_the_others(nodes: int) -> dict[str, str]:
    """Return what a node holds back if several share the machine: together they offer what the machine has."""
    if nodes == 1:
        return {}
    cpu = 1000 * (os.cpu_count() or 1)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": f"{cpu * (nodes - 1) // nodes}m", "memory": str(memory * (nodes - 1) // nodes)}
