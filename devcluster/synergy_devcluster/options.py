"""What ``up`` may be asked for, and how it is written on a command line."""

import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.gpu_plugin.gpu_types import GpuType, gpu_type
from synergy_devcluster.gpu_plugin.shared import MAX_REPLICAS, PREFERENCES, Preference

MAX_GPUS_PER_NODE = 64
MAX_FAKE_NODES = 5000
MAX_REAL_NODES = 3
_GROUP = re.compile(r"(?P<type>[A-Za-z0-9][A-Za-z0-9._-]*)=(?P<nodes>\d+)x(?P<gpus>\d+)(?P<rest>(:[a-z]+=[^:,=]+)*)")
_MEMORY = re.compile(r"(\d+)([KMGT]i)")
_MEMORY_FACTOR = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True)
class FakeNodes:
    """A group of equal fake nodes. ``gpus``, ``cpus`` and ``memory_bytes`` are per node."""

    type_name: str
    nodes: int
    gpus: int
    cpus: int
    memory_bytes: int

    def in_words(self) -> str:
        """Return the group as it is written on the command line."""
        memory = (
            f"{self.memory_bytes // 2**30}Gi" if self.memory_bytes % 2**30 == 0 else f"{self.memory_bytes // 2**10}Ki"
        )
        return f"{self.type_name}={self.nodes}x{self.gpus}:cpu={self.cpus}:mem={memory}"

    def gpu(self) -> GpuType:
        """Return the GPU type of these nodes."""
        return gpu_type(self.type_name)


@dataclass(frozen=True)
class Options:
    """What a devcluster consists of.

    ``gpus`` and ``gpu`` describe the fake GPUs of each of the ``real_nodes``; ``fake_nodes`` are made with kwok;
    ``volumes`` is the number of persistent volumes of 1 GiB that wait for a claim. With ``gpu_replicas`` above 1 the
    real nodes share their GPUs by MPS; ``gpu_preference`` is which GPU their plugin prefers for a new client, and
    ``gpu_renamed`` makes the resource ``nvidia.com/gpu.shared``.
    """

    gpus: int = 2
    gpu: str = "A100"
    fake_nodes: tuple[FakeNodes, ...] = ()
    volumes: int = 64
    bin_dir: Path | None = None
    real_nodes: int = 1
    gpu_replicas: int = 1
    gpu_preference: Preference = "distributed"
    gpu_renamed: bool = False

    @property
    def resource(self) -> str:
        """The resource as which the real nodes offer their GPUs."""
        return "nvidia.com/gpu.shared" if self.gpu_renamed else "nvidia.com/gpu"

    def __post_init__(self) -> None:
        if not 0 <= self.gpus <= MAX_GPUS_PER_NODE:
            raise BadInputError(f"--gpus: {self.gpus} is not between 0 and {MAX_GPUS_PER_NODE}")
        if not 1 <= self.real_nodes <= MAX_REAL_NODES:
            raise BadInputError(f"--real-nodes: {self.real_nodes} is not between 1 and {MAX_REAL_NODES}")
        if not 1 <= self.gpu_replicas <= MAX_REPLICAS:
            raise BadInputError(f"--gpu-replicas: {self.gpu_replicas} is not between 1 and {MAX_REPLICAS}")
        if self.gpu_preference not in PREFERENCES:
            raise BadInputError(f"--gpu-preference: {self.gpu_preference!r} is not one of {', '.join(PREFERENCES)}")
        if self.gpu_renamed and self.gpu_replicas == 1:
            raise BadInputError("--gpu-renamed: only shared GPUs are renamed: give --gpu-replicas above 1")
        if not 0 <= self.volumes <= 500:
            raise BadInputError(f"--volumes: {self.volumes} is not between 0 and 500")
        if self.bin_dir is not None and not self.bin_dir.is_dir():
            raise BadInputError(f"--bin-dir: {self.bin_dir} is not a folder")
        gpu_type(self.gpu)

    def same_cluster(self, other: "Options") -> bool:
        """Say whether both ask for the same cluster; where programs come from does not matter."""
        return replace(self, bin_dir=other.bin_dir) == other

    def fake_node_count(self) -> int:
        """Return the number of fake nodes."""
        return sum(group.nodes for group in self.fake_nodes)

    def in_words(self) -> str:
        """Return the options as they are written on the command line."""
        fake = ",".join(group.in_words() for group in self.fake_nodes)
        words = f"--gpus {self.gpus} --gpu-type {self.gpu} --volumes {self.volumes}"
        words += f" --real-nodes {self.real_nodes}" if self.real_nodes > 1 else ""
        if self.gpu_replicas > 1:
            words += f" --gpu-replicas {self.gpu_replicas} --gpu-preference {self.gpu_preference}"
            words += " --gpu-renamed" if self.gpu_renamed else ""
        return f"{words} --fake-nodes {fake}" if fake else words

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON values, for the state file; where programs came from is recorded there itself."""
        return {**asdict(replace(self, bin_dir=None)), "bin_dir": None}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Options":
        """Read what :meth:`to_json` wrote."""
        groups = tuple(FakeNodes(**group) for group in value["fake_nodes"])
        return cls(**{**value, "fake_nodes": groups})


@dataclass
class _Extras:
    cpus: int = 24
    memory_bytes: int = 500 * 2**30
    seen: set[str] = field(default_factory=set)

    def take(self, group: str, item: str) -> None:
        name, _, value = item.partition("=")
        if name in self.seen:
            raise BadInputError(f"--fake-nodes: {group!r} gives {name} twice")
        self.seen.add(name)
        if name == "cpu" and value.isdigit() and int(value) > 0:
            self.cpus = int(value)
        elif name == "mem" and (match := _MEMORY.fullmatch(value)):
            self.memory_bytes = int(match[1]) * _MEMORY_FACTOR[match[2]]
        else:
            raise BadInputError(f"--fake-nodes: {item!r} in {group!r}: write cpu=24 or mem=500Gi")


def parse_fake_nodes(text: str) -> tuple[FakeNodes, ...]:
    """Read groups such as ``V100=25x8,T4=25x8:cpu=24:mem=500Gi`` (TYPE=NODESxGPUS per node).

    Raises:
        BadInputError: the text is not of that form, or asks for more than the limits.
    """
    groups = tuple(_parse_group(part.strip()) for part in text.split(",") if part.strip())
    names = [group.type_name for group in groups]
    if len(set(names)) != len(names):
        raise BadInputError("--fake-nodes: a GPU type is named twice: write each type once")
    if sum(group.nodes for group in groups) > MAX_FAKE_NODES:
        raise BadInputError(f"--fake-nodes: more than {MAX_FAKE_NODES} nodes: ask for fewer")
    return groups


def _parse_group(text: str) -> FakeNodes:
    match = _GROUP.fullmatch(text)
    if not match:
        raise BadInputError(f"--fake-nodes: {text!r} is not TYPE=NODESxGPUS[:cpu=N][:mem=NGi], for example V100=25x8")
    extras = _Extras()
    for item in match["rest"].split(":")[1:]:
        extras.take(text, item)
    nodes, gpus = int(match["nodes"]), int(match["gpus"])
    if nodes < 1:
        raise BadInputError(f"--fake-nodes: {text!r}: at least 1 node")
    if gpus > MAX_GPUS_PER_NODE:
        raise BadInputError(f"--fake-nodes: {text!r}: at most {MAX_GPUS_PER_NODE} GPUs per node")
    return FakeNodes(match["type"], nodes, gpus, extras.cpus, extras.memory_bytes)
