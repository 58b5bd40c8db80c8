"""The demo on kind: a cluster of `kind-config.yaml` in Docker, with fake GPUs by a DaemonSet."""

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import yaml

from synergy_api.names import RESOURCE_GPU
from synergy_cli.demo.kind_tools import KindTools, tools_here
from synergy_cli.demo.place import Report
from synergy_cli.product import SOURCE, helm_install
from synergy_devcluster import DevclusterError, Paths
from synergy_devcluster.programs.commands import run
from synergy_kube import KubeClient
from synergy_kube.resources import DAEMON_SETS, NODES

GPU_NODES: Final = "nvidia.com/gpu.present=true"
LABEL_COUNT: Final = "nvidia.com/gpu.count"
SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler"
"""kind's nodes hold it already, in the cluster's own version."""

_CREATE_S: Final = 900.0
_GPUS_S: Final = 180.0
_MANAGER: Final = "kube-synergy-demo"


class KindCluster:
    """A kind cluster, named as in its configuration. One that is there already is used."""

    def __init__(self, source: Path = SOURCE, paths: Paths | None = None, tools: KindTools | None = None) -> None:
        self._source = source
        self._config = source / "kind-config.yaml"
        self._kubeconfig = (paths or Paths.of()).cache / "kind.kubeconfig"
        self._tools = tools or tools_here(paths)
        self._mine = False

    @property
    def cpu_millis(self) -> int:
        """See DemoCluster."""
        return self._tools.cpu_millis

    @property
    def name(self) -> str:
        """The cluster's name."""
        return str(yaml.safe_load(self._config.read_text(encoding="utf-8"))["name"])

    def check(self) -> None:
        """See DemoCluster."""
        self._tools.check()
        if not self._config.is_file():
            raise DevclusterError(f"{self._config} is not there: run this from a source tree")

    def start(self, report: Report) -> None:
        """See DemoCluster."""
        self._kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        self._create(report)
        revision = self._tools.load(self._source, self.name, report)
        version = asyncio.run(self._fake_gpus(report))
        report("helm install kube-synergy")
        values = {"scheduler.image": f"{SCHEDULER_IMAGE}:{version}", "dashboard.enabled": "true"}
        helm = self._tools.program("helm")
        helm_install(helm, self._kubeconfig, "values-kind.yaml", values, revision=revision, source=self._source)

    @property
    def kubeconfig(self) -> Path:
        """See DemoCluster."""
        return self._kubeconfig

    @property
    def kubectl(self) -> Path:
        """See DemoCluster. Only the dashboard's address needs it."""
        return Path(self._tools.program("kubectl"))

    @property
    def mine(self) -> bool:
        """See DemoCluster."""
        return self._mine

    def end(self, report: Report) -> None:
        """See DemoCluster."""
        report(f"kind delete cluster --name {self.name}")
        try:
            self._kind("delete", "cluster", "--name", self.name, "--kubeconfig", self._kubeconfig, timeout_s=120)
        finally:
            self._tools.end()

    @property
    def how_to_end(self) -> str:
        """See DemoCluster."""
        return self._tools.how_to_end(self.name)

    def _create(self, report: Report) -> None:
        options = self._tools.start(report)
        access: list[str | Path] = ["--name", self.name, "--kubeconfig", self._kubeconfig]
        if self.name in self._kind("get", "clusters").split():
            report(f"kind cluster {self.name} is there")
            self._kind("export", "kubeconfig", *access)
            return
        self._mine = True
        report(f"kind create cluster --config {self._config.name}")
        wait = ["--wait", "180s"]
        self._kind("create", "cluster", "--config", self._config, *options, *access, *wait, timeout_s=_CREATE_S)

    def _kind(self, *words: str | Path, timeout_s: float = 60) -> str:
        return run([self._tools.program("kind"), *words], env=self._tools.environment, timeout_s=timeout_s)

    async def _fake_gpus(self, report: Report) -> str:
        """Offer the GPUs and wait until the nodes have them; the cluster's version."""
        report("fake GPUs: a DaemonSet with their device plugin")
        plugin = yaml.safe_load((self._source / "examples" / "kind" / "fake-gpus.yaml").read_text(encoding="utf-8"))
        metadata = plugin["metadata"]
        async with await KubeClient.connect(kubeconfig=str(self._kubeconfig)) as kube:
            await kube.apply(DAEMON_SETS, metadata["name"], plugin, metadata["namespace"], manager=_MANAGER)
            deadline = time.monotonic() + _GPUS_S
            while True:
                nodes = (await kube.list(NODES, label_selector=GPU_NODES))["items"]
                if nodes and all(map(_has_its_gpus, nodes)):
                    return await kube.server_version()
                if time.monotonic() > deadline:
                    raise DevclusterError(
                        f"no GPUs on the nodes labelled {GPU_NODES} after {_GPUS_S:.0f} s: see "
                        f"kubectl --kubeconfig {self._kubeconfig} -n {metadata['namespace']} get pods"
                    )
                await asyncio.sleep(0.5)


def _has_its_gpus(node: Any) -> bool:
    allocatable = node["status"].get("allocatable") or {}
    return bool(allocatable.get(RESOURCE_GPU) == node["metadata"]["labels"][LABEL_COUNT])
