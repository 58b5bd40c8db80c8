"""The demo on kind: a cluster of `kind-config.yaml` in Docker, with fake GPUs by a DaemonSet."""

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from synergy_api.names import RESOURCE_GPU
from synergy_cli.demo.place import Report
from synergy_cli.product import SOURCE, helm_install
from synergy_devcluster import DevclusterError, Paths
from synergy_devcluster.images.project import GPU_PLUGIN, PROJECT_IMAGES, SCHEDULER
from synergy_devcluster.programs.commands import run
from synergy_devcluster.programs.versions import pinned
from synergy_kube import KubeClient
from synergy_kube.resources import DAEMON_SETS, NODES

GPU_NODES: Final = "nvidia.com/gpu.present=true"
LABEL_COUNT: Final = "nvidia.com/gpu.count"
SCHEDULER_IMAGE: Final = "registry.k8s.io/kube-scheduler"
"""kind's nodes hold it already, in the cluster's own version."""
IMAGES: Final = (*(image for image in PROJECT_IMAGES if image != SCHEDULER), GPU_PLUGIN)

_CREATE_S: Final = 900.0
_BUILD_S: Final = 1800.0
_GPUS_S: Final = 180.0
_MANAGER: Final = "kube-synergy-demo"


class KindCluster:
    """A kind cluster, named as in its configuration. One that is there already is used."""

    cpu_millis: Final = 1710
    """As on the devcluster, beside kind's own network and the GPU plugin."""

    def __init__(self, source: Path = SOURCE, paths: Paths | None = None) -> None:
        self._source = source
        self._config = source / "kind-config.yaml"
        self._kubeconfig = (paths or Paths.of()).cache / "kind.kubeconfig"
        self._mine = False

    @property
    def name(self) -> str:
        """The cluster's name."""
        return str(yaml.safe_load(self._config.read_text(encoding="utf-8"))["name"])

    def check(self) -> None:
        """See Place."""
        missing = missing_for_kind()
        if missing:
            raise DevclusterError(f"this machine cannot run the demo on kind yet: {'; '.join(missing)}")
        if not self._config.is_file():
            raise DevclusterError(f"{self._config} is not there: run this from a source tree")

    def start(self, report: Report) -> None:
        """See Place."""
        self._kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        self._create(report)
        revision = self._images(report)
        version = asyncio.run(self._fake_gpus(report))
        report("helm install kube-synergy")
        values = {"scheduler.image": f"{SCHEDULER_IMAGE}:{version}"}
        helm_install("helm", self._kubeconfig, "values-kind.yaml", values, revision=revision, source=self._source)

    @property
    def kubeconfig(self) -> Path:
        """See Place."""
        return self._kubeconfig

    @property
    def kubectl(self) -> Path:
        """See Place. Only the dashboard's address needs it."""
        return Path(shutil.which("kubectl") or "kubectl")

    @property
    def mine(self) -> bool:
        """See Place."""
        return self._mine

    def end(self, report: Report) -> None:
        """See Place."""
        report(f"kind delete cluster --name {self.name}")
        run(["kind", "delete", "cluster", "--name", self.name, "--kubeconfig", self._kubeconfig], timeout_s=120)

    @property
    def how_to_end(self) -> str:
        """See Place."""
        return f"kind delete cluster --name {self.name}"

    def _create(self, report: Report) -> None:
        access: list[str | Path] = ["--name", self.name, "--kubeconfig", self._kubeconfig]
        if self.name in run(["kind", "get", "clusters"]).split():
            report(f"kind cluster {self.name} is there")
            run(["kind", "export", "kubeconfig", *access])
            return
        self._mine = True
        report(f"kind create cluster --config {self._config.name}")
        run(["kind", "create", "cluster", "--config", self._config, *access, "--wait", "180s"], timeout_s=_CREATE_S)

    def _images(self, report: Report) -> str:
        """Build and load the images; what changes when one of them does."""
        built = []
        for image in IMAGES:
            report(f"docker build {image.tag}")
            command: list[str | Path] = [
                "docker",
                "build",
                "--quiet",
                "--file",
                self._source / image.dockerfile,
                "--tag",
                image.tag,
            ]
            built.append(run([*command, self._source], timeout_s=_BUILD_S).strip())
        report("kind load docker-image")
        tags = [image.tag for image in IMAGES]
        run(["kind", "load", "docker-image", *tags, "--name", self.name], timeout_s=_CREATE_S)
        return "".join(built)

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


def missing_for_kind(which: Callable[[str], str | None] = shutil.which) -> list[str]:
    """What the machine lacks, each in words with how to get it. ``which`` finds a program."""
    docker = which("docker")
    found = [
        None if docker else "docker is not on PATH: install Docker, https://docs.docker.com/engine/install",
        None
        if which("kind")
        else f"kind is not on PATH: go install sigs.k8s.io/kind@v{pinned().kind}, or see https://kind.sigs.k8s.io",
        None if which("helm") else "helm is not on PATH: install Helm 3, https://helm.sh/docs/intro/install",
        _daemon(docker) if docker else None,
    ]
    return [text for text in found if text]


def _daemon(docker: str) -> str | None:
    try:
        run([docker, "info"])
    except DevclusterError as error:
        return f"Docker does not answer: start it, and let this user use it ({error})"
    return None


def _has_its_gpus(node: Any) -> bool:
    allocatable = node["status"].get("allocatable") or {}
    return bool(allocatable.get(RESOURCE_GPU) == node["metadata"]["labels"][LABEL_COUNT])
