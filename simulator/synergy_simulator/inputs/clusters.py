"""The cluster: pools of equal nodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from synergy_core.model.names import unknown_field
from synergy_core.model.snapshot import Node, Tenant
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.inputs.table import Table, read_text
from synergy_simulator.inputs.tenants import read_tenants

_MOST_LEVELS = 4
_MOST = 1_000_000
"""No amount of a pool is larger, the number of its nodes neither: each node is kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPool:
    """Equal nodes with GPUs of one type."""

    name: str
    gpu_type: str
    nodes: int
    gpus_per_node: int
    cpus_per_node: float
    memory_gib_per_node: float
    cost_per_hour: float = 0.0
    """Price of a GPU for an hour."""
    storage_gib_per_s: float = 0.0
    replicas: int = 1
    """Jobs that may share a GPU."""
    gpu_memory_gib: float = 0.0
    """Of a GPU; 0: not known, and its GPUs are not shared."""
    client_thread_percent: int = 100
    """Of a GPU's threads, what MPS lets each client use, one that has its GPU alone too."""
    nodes_per_domain: tuple[int, ...] = ()
    """Nodes of a block, a rack and so on, the widest level first: nodes that follow each other are together."""
    domain_gib_per_s: tuple[float, ...] = ()
    """Bandwidth of a node's link within a domain of each of these levels."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Pools of nodes; the first one's GPU type is the reference for durations."""

    pools: tuple[SimulatedPool, ...]
    tenants: tuple[Tenant, ...] = ()
    """A tree with guarantees and limits that every plan keeps."""

    @property
    def gpus(self) -> int:
        """GPUs of all types."""
        return sum(pool.nodes * pool.gpus_per_node for pool in self.pools)

    @property
    def gpu_types(self) -> list[str]:
        """GPU types, each once, in the order of the pools."""
        return list(dict.fromkeys(pool.gpu_type for pool in self.pools))

    def gpus_of(self, gpu_type: str) -> int:
        """GPUs of one type."""
        return sum(pool.nodes * pool.gpus_per_node for pool in self.pools if pool.gpu_type == gpu_type)

    def fewest_nodes(self, gpus: int) -> dict[str, int]:
        """By GPU type the smallest number of nodes that could hold a job; of a type that is too small, all and one."""
        found = {}
        for gpu_type in self.gpu_types:
            count, left = 0, gpus
            for pool in sorted(self.pools, key=lambda pool: -pool.gpus_per_node):
                if pool.gpu_type == gpu_type and pool.gpus_per_node and left > 0:
                    taken = min(pool.nodes, -(-left // pool.gpus_per_node))
                    count, left = count + taken, left - taken * pool.gpus_per_node
            found[gpu_type] = count + (left > 0)
        return found

    def nodes(self) -> tuple[Node, ...]:
        """The nodes as the planner sees them."""
        return tuple(
            Node(
                name=f"{pool.name}-{index:0{len(str(pool.nodes - 1))}}",
                gpu_type=pool.gpu_type,
                gpus=pool.gpus_per_node,
                cpu_millis=round(pool.cpus_per_node * 1000),
                memory_bytes=round(pool.memory_gib_per_node * GIB),
                replicas=pool.replicas,
                gpu_memory_bytes=round(pool.gpu_memory_gib * GIB),
                client_thread_percent=pool.client_thread_percent,
                price_per_hour=pool.cost_per_hour,
                domains=tuple(f"{pool.name}-{index // size}" for size in pool.nodes_per_domain),
                domain_bytes_per_s=tuple(rate * GIB for rate in pool.domain_gib_per_s),
            )
            for pool in self.pools
            for index in range(pool.nodes)
        )


def shared(cluster: Cluster) -> Cluster:
    """The cluster with GPUs that two jobs at least may share."""
    return replace(cluster, pools=tuple(replace(pool, replicas=max(2, pool.replicas)) for pool in cluster.pools))


def homogeneous(nodes: int, *, cpus_per_gpu: float = 3.0, gpu_type: str = "V100") -> Cluster:
    """Servers of 8 GPUs and 500 GiB as in Synergy's evaluation (section 5.1)."""
    pool = SimulatedPool(
        name=gpu_type.lower(),
        gpu_type=gpu_type,
        nodes=nodes,
        gpus_per_node=8,
        cpus_per_node=8 * cpus_per_gpu,
        memory_gib_per_node=500.0,
    )
    return Cluster((pool,))


def read_cluster(path: Path) -> Cluster:
    """Read a cluster. Raises InputError that names line and field."""
    return _tiresias(path) if path.suffix == ".csv" else _Reader(path).read()


_TIRESIAS = ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node")


def _tiresias(path: Path) -> Cluster:
    """The table of the Tiresias authors: one line, memory in GB."""
    table = Table(path)
    table.require(_TIRESIAS, _TIRESIAS)
    rows = list(table.rows())
    if len(rows) != 1:
        raise InputError(InputLocation(str(path)), f"has {len(rows)} lines; give one")
    row = rows[0]
    pool = SimulatedPool(
        name="gpu",
        gpu_type="GPU",
        nodes=row.count("num_switch") * row.count("num_node_p_switch"),
        gpus_per_node=row.count("num_gpu_p_node"),
        cpus_per_node=row.count("num_cpu_p_node"),
        memory_gib_per_node=row.count("mem_p_node"),
    )
    return Cluster((pool,))


class _Reader:
    def __init__(self, path: Path) -> None:
        self._file = str(path)
        self._text = read_text(path)

    def read(self) -> Cluster:
        root = self._root()
        self._only(root, {"pools", "tenants"}, "")
        listed = dict(_entries(root)).get("pools")
        if not isinstance(listed, yaml.SequenceNode) or not listed.value:
            raise self._bad(listed or root, "pools", "must be a list with at least one pool")
        pools = tuple(self._pool(node, f"pools[{index}]") for index, node in enumerate(listed.value))
        names = [pool.name for pool in pools]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self._bad(listed.value[index], f"pools[{index}].name", f"{name!r} occurs twice")
        return Cluster(pools, read_tenants(self._file, dict(_entries(root)).get("tenants")))

    def _root(self) -> yaml.MappingNode:
        try:
            root = yaml.compose(self._text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise InputError(InputLocation(self._file, line), f"not YAML: {error.problem}") from None
        if not isinstance(root, yaml.MappingNode):
            raise InputError(InputLocation(self._file, 1), "must be a mapping with the field pools")
        return root

    def _pool(self, node: yaml.Node, field: str) -> SimulatedPool:
        if not isinstance(node, yaml.MappingNode):
            raise self._bad(node, field, "must be a mapping")
        checks: dict[str, Callable[[yaml.Node, str], Any]] = {
            "name": self._text_of,
            "gpu_type": self._text_of,
            "nodes": self._count,
            "gpus_per_node": self._count,
            "cpus_per_node": self._positive,
            "memory_gib_per_node": self._positive,
            "cost_per_hour": self._amount,
            "storage_gib_per_s": self._amount,
            "replicas": self._count,
            "gpu_memory_gib": self._amount,
            "client_thread_percent": self._percent,
            "nodes_per_domain": self._sizes,
            "domain_gib_per_s": self._rates,
        }
        self._only(node, checks.keys(), field)
        given = dict(_entries(node))
        for name in list(checks)[:6]:
            if name not in given:
                raise self._bad(node, f"{field}.{name}", "is missing; add it")
        pool = SimulatedPool(**{name: checks[name](value, f"{field}.{name}") for name, value in given.items()})
        for wider, narrower in pairwise(pool.nodes_per_domain):
            if wider % narrower or wider == narrower:
                problem = f"{wider} is not a multiple of {narrower}; give the widest level first"
                raise self._bad(given["nodes_per_domain"], f"{field}.nodes_per_domain", problem)
        if len(pool.domain_gib_per_s) > len(pool.nodes_per_domain):
            problem = "has more entries than nodes_per_domain; give one for each level"
            raise self._bad(given["domain_gib_per_s"], f"{field}.domain_gib_per_s", problem)
        return pool

    def _sizes(self, node: yaml.Node, field: str) -> tuple[int, ...]:
        return tuple(self._count(one, f"{field}[{index}]") for index, one in enumerate(self._list(node, field)))

    def _rates(self, node: yaml.Node, field: str) -> tuple[float, ...]:
        return tuple(self._positive(one, f"{field}[{index}]") for index, one in enumerate(self._list(node, field)))

    def _list(self, node: yaml.Node, field: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) > _MOST_LEVELS:
            raise self._bad(node, field, f"must be a list of at most {_MOST_LEVELS} entries")
        found: list[yaml.Node] = node.value
        return found

    def _only(self, node: yaml.MappingNode, known: Any, field: str) -> None:
        seen = set()
        for name, value in _entries(node):
            path = f"{field}.{name}".lstrip(".")
            if name not in known:
                raise self._bad(value, path, unknown_field(name, known))
            if name in seen:
                raise self._bad(value, path, "occurs twice; give it once")
            seen.add(name)

    def _text_of(self, node: yaml.Node, field: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self._bad(node, field, "must be a text")
        return str(node.value)

    def _amount(self, node: yaml.Node, field: str) -> float:
        try:
            value = float(node.value) if isinstance(node, yaml.ScalarNode) else math.nan
        except ValueError:
            value = math.nan
        if not 0 <= value <= _MOST:
            raise self._bad(node, field, f"must be a number of at least 0 and at most {_MOST:,}, is {node.value!r}")
        return value

    def _positive(self, node: yaml.Node, field: str) -> float:
        value = self._amount(node, field)
        if value <= 0:
            raise self._bad(node, field, "must be above 0, is 0")
        return value

    def _count(self, node: yaml.Node, field: str) -> int:
        value = self._amount(node, field)
        if value != int(value) or value < 1:
            raise self._bad(node, field, f"must be a whole number of at least 1, is {node.value!r}")
        return int(value)

    def _percent(self, node: yaml.Node, field: str) -> int:
        value = self._count(node, field)
        if value > 100:
            raise self._bad(node, field, f"must be at most 100 percent, is {value}")
        return value

    def _bad(self, node: yaml.Node, field: str, problem: str) -> InputError:
        return InputError(InputLocation(self._file, node.start_mark.line + 1, field), problem)


def _entries(node: yaml.MappingNode) -> list[tuple[str, yaml.Node]]:
    return [(str(key.value), value) for key, value in node.value]
