"""What a kind cluster is made with: the user's own Docker, kind and Helm, or all of them from this project."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol

from synergy_cli.demo.place import Report
from synergy_devcluster import DevclusterError, Paths
from synergy_devcluster.images.project import GPU_PLUGIN, PROJECT_IMAGES, SCHEDULER, build_images
from synergy_devcluster.kind import node_image
from synergy_devcluster.kind.docker import OwnDocker
from synergy_devcluster.programs import prerequisites
from synergy_devcluster.programs.commands import run
from synergy_devcluster.programs.toolchain import kind_module, locate, modules
from synergy_devcluster.programs.versions import pinned

IMAGES: Final = (*(image for image in PROJECT_IMAGES if image != SCHEDULER), GPU_PLUGIN)
"""kind's nodes hold the kube-scheduler already, in the cluster's own version."""
_BUILD_S: Final = 1800.0
_LOAD_S: Final = 900.0


class KindTools(Protocol):
    """How kind is run, and how it gets its images."""

    cpu_millis: int
    """What the GPU node is to offer to jobs and to what runs beside them."""

    def check(self) -> None:
        """Raise DevclusterError with all that is missing."""

    def start(self, report: Report) -> list[str]:
        """Have Docker running; options for `kind create cluster`."""

    def program(self, name: str) -> str:
        """The path of kind, helm or kubectl."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of kind."""

    def load(self, source: Path, cluster: str, report: Report) -> str:
        """Build the project's images and give them to the nodes; what changes when one of them does."""

    def end(self) -> None:
        """End what `start` started."""

    def how_to_end(self, cluster: str) -> str:
        """The command that deletes the cluster, and Docker with it if this project started it."""


class UsersTools:
    """Docker, kind and Helm as the user has them."""

    cpu_millis: int = 1710
    """As on the devcluster, beside kind's own network and the GPU plugin."""

    def check(self) -> None:
        """See KindTools."""
        if missing := missing_for_kind():
            raise DevclusterError(f"this machine cannot run the demo on kind yet: {'; '.join(missing)}")

    def start(self, report: Report) -> list[str]:
        """See KindTools."""
        del report
        return []

    def program(self, name: str) -> str:
        """See KindTools."""
        return shutil.which(name) or name

    @property
    def environment(self) -> Mapping[str, str]:
        """See KindTools."""
        return os.environ

    def load(self, source: Path, cluster: str, report: Report) -> str:
        """See KindTools."""
        built = []
        for image in IMAGES:
            report(f"docker build {image.tag}")
            file = source / image.dockerfile
            command: list[str | Path] = ["docker", "build", "--quiet", "--file", file, "--tag", image.tag, source]
            built.append(run(command, timeout_s=_BUILD_S).strip())
        report("kind load docker-image")
        run(["kind", "load", "docker-image", *(image.tag for image in IMAGES), "--name", cluster], timeout_s=_LOAD_S)
        return "".join(built)

    def end(self) -> None:
        """See KindTools."""

    def how_to_end(self, cluster: str) -> str:
        """See KindTools."""
        return f"kind delete cluster --name {cluster}"


class OwnTools:
    """Everything built here: a Docker daemon of its own, the node image, kind and Helm."""

    cpu_millis: int = 1620
    """As on the devcluster, beside the node's agent and the GPU plugin."""

    def __init__(self, paths: Paths | None = None) -> None:
        self._paths = paths or Paths.of()
        self._docker = OwnDocker.of(self._paths)

    def check(self) -> None:
        """See KindTools."""
        prerequisites.check()

    def start(self, report: Report) -> list[str]:
        """See KindTools."""
        archive = node_image.build(report, self._paths)
        locate(self._paths, report, wanted=(kind_module(),))
        self._docker.start(report)
        if not self._docker.has_image(node_image.tag()):
            report("docker load of the node image")
            self._docker.docker("load", "--quiet", "--input", archive, timeout_s=_LOAD_S)
        return ["--image", node_image.tag()]

    def program(self, name: str) -> str:
        """See KindTools."""
        return str(locate(self._paths, wanted=(kind_module(),) if name == "kind" else modules())[name])

    @property
    def environment(self) -> Mapping[str, str]:
        """See KindTools."""
        return {**os.environ, **self._docker.environment}

    def load(self, source: Path, cluster: str, report: Report) -> str:
        """See KindTools."""
        rooms = tuple(image.room for image in IMAGES)
        archives = build_images(source, only=rooms, paths=self._paths, report=report).values()
        report("kind load image-archive")
        names = run([self.program("kind"), "get", "nodes", "--name", cluster], env=self.environment).split()
        # pods do not go to the control plane, and loading takes the disk's time
        workers = [name for name in names if not name.endswith("-control-plane")] or names
        given = ["--name", cluster, "--nodes", ",".join(workers)]
        for archive in archives:
            command: list[str | Path] = [self.program("kind"), "load", "image-archive", archive, *given]
            run(command, env=self.environment, timeout_s=_LOAD_S)
        return "".join(archive.name for archive in archives)

    def end(self) -> None:
        """See KindTools."""
        self._docker.end()

    def how_to_end(self, cluster: str) -> str:
        """See KindTools."""
        del cluster
        return "make kind-down"


def tools_here(paths: Paths | None = None) -> KindTools:
    """The user's own where their Docker answers, else the project's on root's Debian, else the user's, which lack
    something."""
    if not _daemon("docker") or prerequisites.find_missing().others:
        return UsersTools()
    return OwnTools(paths)


def missing_for_kind(which: Callable[[str], str | None] = shutil.which) -> list[str]:
    """What the machine lacks, each in words with how to get it. ``which`` finds a program."""
    docker = which("docker")
    found = [
        None
        if docker
        else "docker is not on PATH: install Docker, https://docs.docker.com/engine/install, or be root on Debian, "
        "where none is needed",
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
