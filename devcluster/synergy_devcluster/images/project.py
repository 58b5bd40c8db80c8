"""The images of the project itself: which there are, how they are built here, and which the node lacks."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synergy_devcluster.cluster import Cluster
from synergy_devcluster.errors import BadInputError
from synergy_devcluster.images.base import BASE_IMAGE
from synergy_devcluster.images.build import build_image
from synergy_devcluster.paths import Paths
from synergy_devcluster.programs import toolchain
from synergy_devcluster.programs.commands import run
from synergy_devcluster.steps import Report, silent

TAG: Final = "dev"
SOURCE: Final = Path(__file__).parents[3]
"""The source tree this package is installed from, where it is installed as `make setup` does."""


@dataclass(frozen=True)
class ProjectImage:
    """An image of the project; the Dockerfile is relative to the source tree, which is its context."""

    room: str
    dockerfile: Path

    @property
    def tag(self) -> str:
        """Its name on the devcluster's node."""
        return f"localhost/kube-synergy-{self.room}:{TAG}"


SCHEDULER: Final = ProjectImage("scheduler", Path("images/scheduler/Dockerfile"))
PROJECT_IMAGES: Final = (
    ProjectImage("operator", Path("operator/Dockerfile")),
    ProjectImage("extender", Path("extender/Dockerfile")),
    ProjectImage("dashboard", Path("dashboard/Dockerfile")),
    ProjectImage("profiler", Path("profiler-job/Dockerfile")),
    SCHEDULER,
    ProjectImage("examples", Path("examples/Dockerfile")),
)
GPU_PLUGIN: Final = ProjectImage("gpu-plugin", Path("images/gpu-plugin/Dockerfile"))
"""The device plugin in a container, for clusters whose nodes are not ours, such as kind's. A devcluster's own runs as a
process: this one is built only where it is named."""
EXAMPLES_TORCH: Final = ProjectImage("examples-torch", Path("examples/Dockerfile.torch"))
"""The examples with PyTorch. With its libraries it is large: it is built only where it is named."""

SIMULATOR: Final = ProjectImage("simulator", Path("simulator/Dockerfile"))
"""Simulations on a Dask cluster. Nothing of kube-synergy on a cluster needs it: it is built only where it is named."""


def build_images(
    source: Path = SOURCE, *, only: tuple[str, ...] = (), paths: Paths | None = None, report: Report = silent
) -> dict[str, Path]:
    """Build the project's images and return their archives by tag; what did not change is not built again.

    Args:
        source: The project's source tree.
        only: Images to build, such as ``operator``; if empty, all that a devcluster needs.

    Raises:
        BadInputError: ``source`` is no source tree of the project, or a room has no image.
        DevclusterError: a build failed.
    """
    places = paths or Paths.of()
    return {image.tag: _build(image, source, places, report) for image in _chosen(only, source)}


def load_images(
    cluster: Cluster, source: Path = SOURCE, *, only: tuple[str, ...] = (), report: Report = silent
) -> list[str]:
    """Build the project's images and give the real nodes those that they lack; return the tags they were given.

    Raises:
        BadInputError, DevclusterError: as :func:`build_images`.
    """
    loaded = _Loaded(cluster)
    given = []
    for tag, archive in build_images(source, only=only, paths=cluster.paths, report=report).items():
        if not loaded.has(tag, archive):
            report(f"loading image {tag}")
            cluster.load_image(archive)
            loaded.add(tag, archive)
            given.append(tag)
    return given


def _chosen(only: tuple[str, ...], source: Path) -> list[ProjectImage]:
    known = (*PROJECT_IMAGES, GPU_PLUGIN, EXAMPLES_TORCH, SIMULATOR)
    rooms = [image.room for image in known]
    for room in only:
        if room not in rooms:
            raise BadInputError(f"image {room!r}: write one of {', '.join(rooms)}")
    chosen = [image for image in known if image.room in only] if only else list(PROJECT_IMAGES)
    for image in chosen:
        if not (source / image.dockerfile).is_file():
            raise BadInputError(f"{source} is not the project's source tree: {image.dockerfile} is not in it")
    return chosen


def _build(image: ProjectImage, source: Path, paths: Paths, report: Report) -> Path:
    if image == SCHEDULER:
        return _build_scheduler(source, paths, report)
    arguments = {"BASE": BASE_IMAGE}
    return build_image(source / image.dockerfile, source, image.tag, arguments, paths=paths, report=report)


def _build_scheduler(source: Path, paths: Paths, report: Report) -> Path:
    """The image around the kube-scheduler that the devcluster has built from the same module."""
    program = toolchain.locate(paths, report)["kube-scheduler"]
    context = paths.images / "scheduler-context"
    context.mkdir(parents=True, exist_ok=True)
    copy = context / "kube-scheduler"
    if not copy.exists() or copy.stat().st_mtime_ns != program.stat().st_mtime_ns:
        shutil.copy2(program, copy)
    return build_image(source / f"{SCHEDULER.dockerfile}.built", context, SCHEDULER.tag, paths=paths, report=report)


class _Loaded:
    """What the nodes were given, by tag: the archive, and what containerd made of it, which it may remove."""

    def __init__(self, cluster: Cluster) -> None:
        self._socket = cluster.real_nodes()[0].containerd_socket
        self._file = cluster.paths.state / "project-images.json"
        self._record: dict[str, dict[str, str]] = (
            json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
        )

    def has(self, tag: str, archive: Path) -> bool:
        given = {"archive": archive.name, "digest": self._digest(tag)}
        return bool(given["digest"]) and self._record.get(tag) == given

    def add(self, tag: str, archive: Path) -> None:
        self._record[tag] = {"archive": archive.name, "digest": self._digest(tag)}
        self._file.write_text(json.dumps(self._record), encoding="utf-8")

    def _digest(self, tag: str) -> str:
        listing = run(["ctr", f"--address={self._socket}", "--namespace=k8s.io", "images", "list", f"name=={tag}"])
        return "".join(line.split()[2] for line in listing.splitlines()[1:])
