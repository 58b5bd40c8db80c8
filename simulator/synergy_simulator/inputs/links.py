"""How fast the network is between the nodes of a job."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from synergy_core.model.domains import Domains
from synergy_core.model.placement import NodeCounts
from synergy_core.model.snapshot import Node


class Links:
    """The links of a cluster's levels, by GPU type."""

    def __init__(self, nodes: Sequence[Node], link_bytes_per_s: float | None) -> None:
        """`link_bytes_per_s` is the bandwidth where a level tells none."""
        self._link = link_bytes_per_s
        by_name = sorted(nodes, key=lambda node: node.name)
        self._nodes = {kind: [one for one in by_name if one.gpu_type == kind] for kind in {n.gpu_type for n in nodes}}
        self._domains = {kind: Domains(of_type) for kind, of_type in self._nodes.items()}
        self._index: Mapping[str, Mapping[str, int]] = {
            kind: {one.name: index for index, one in enumerate(of_type)} for kind, of_type in self._nodes.items()
        }

    def depth(self, gpu_type: str, names: Iterable[str]) -> int | None:
        """How many domains these nodes share; None for a single one, and where nodes have none."""
        domains, index = self._domains.get(gpu_type), self._index.get(gpu_type, {})
        known = [index[name] for name in names if name in index]
        return domains.depth_of(known) if domains and len(known) > 1 else None

    def at(self, gpu_type: str, depth: int | None) -> float | None:
        """Bytes per second between nodes of this depth; None where that is not known."""
        domains = self._domains.get(gpu_type)
        return (domains.bytes_per_s(depth) if domains and depth else 0.0) or self._link

    def nearest(self, gpu_type: str, gpus: int) -> float | None:
        """Bytes per second between the nearest of the fewest nodes that could hold so many GPUs."""
        domains = self._domains.get(gpu_type)
        if not domains:
            return self._link
        room = np.array([node.gpus for node in self._nodes[gpu_type]], dtype=np.int64)
        depth = domains.holding(gpus, room, NodeCounts(room).fewest(gpus))
        return domains.bytes_per_s(min(depth, domains.deepest)) or self._link
