"""Which two of many jobs may have a GPU of one type together: `Rules.types` for all pairs of them."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, TypeVar

import numpy as np

from synergy_core.model.arrays import Bools, Ints
from synergy_core.model.snapshot import Job, Node

_MOST: Final = 1 << 60
"""Bytes: what is above is more than any GPU has."""
_Value = TypeVar("_Value", bound=Hashable)


class Fitting:
    """Of K jobs that may share GPUs of the type; `nodes` are the type's nodes with shared GPUs."""

    def __init__(self, jobs: Sequence[Job], gpu_type: str, nodes: Sequence[Node]) -> None:
        self._tenant, _ = _numbered(job.tenant for job in jobs)
        self._across: Bools = np.array([job.sharing_across_tenants for job in jobs])
        self._memory = np.array([min(job.usage[gpu_type].memory_bytes, _MOST) for job in jobs], dtype=np.int64)
        self._list, lists = _numbered(job.nodes for job in jobs)
        alike: dict[tuple[int, int, int], list[Node]] = {}
        for node in nodes:
            kind = (node.gpu_memory_bytes, node.client_memory_bytes, node.client_thread_percent)
            alike.setdefault(kind, []).append(node)
        self._alike = [(*kind, _in_common(lists, group)) for kind, group in alike.items()]
        """GPU memory, what MPS leaves a client of it, percent of the threads, and which two lists have a node of these
        in common."""

    def threads(self, two: Ints) -> Ints:
        """Of pairs (2 x P), the percentage of threads that every node leaves them on which they fit; 0: none does."""
        memory = self._memory[two]
        need, most = memory.sum(axis=0), memory.max(axis=0)
        one, other = self._list[two]
        found = np.zeros(two.shape[1], dtype=np.int64)
        for of_gpu, of_client, percent, in_common in self._alike:
            fits = in_common[one, other] & (need <= of_gpu)
            if of_client:
                fits &= most <= of_client
            found = np.where(fits & ((found == 0) | (found > percent)), percent, found)
        return np.where(self._tenants_agree(two), found, 0)

    def _tenants_agree(self, two: Ints) -> Bools:
        tenants = self._tenant[two]
        return np.asarray((tenants[0] == tenants[1]) | self._across[two].all(axis=0))


def _numbered(values: Iterable[_Value]) -> tuple[Ints, list[_Value]]:
    """The number of each value, and the different ones in the order of their numbers."""
    numbers: dict[_Value, int] = {}
    each = [numbers.setdefault(value, len(numbers)) for value in values]
    return np.array(each, dtype=np.int64), list(numbers)


def _in_common(lists: Sequence[tuple[str, ...] | None], nodes: Sequence[Node]) -> Bools:
    """L x L: whether two lists of names have one of the nodes in common; None names all."""
    place = {node.name: column for column, node in enumerate(nodes)}
    named = np.zeros((len(lists), len(nodes)), dtype=np.float32)
    for row, names in enumerate(lists):
        named[row, slice(None) if names is None else [place[name] for name in names if name in place]] = 1.0
    return np.asarray(named @ named.T > 0)
