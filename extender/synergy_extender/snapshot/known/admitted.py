"""Which nodes the templates of jobs admit, kept from one snapshot to the next."""

from collections.abc import Callable

_Kind = tuple[str, tuple[str, ...]]
"""The constraints of jobs, and their GPU types."""
_Nodes = tuple[str, ...] | None


class AdmittedNodes:
    """As long as the nodes are the same. What neither the present snapshot nor the last one that asked has asked for is
    forgotten: an edit of a template makes a new kind of job."""

    def __init__(self) -> None:
        self._last: dict[_Kind, _Nodes] = {}
        self._asked: dict[_Kind, _Nodes] = {}

    def __len__(self) -> int:
        return len(self._last.keys() | self._asked.keys())

    def begin(self) -> None:
        """Another snapshot."""
        if self._asked:  # while all jobs rest, a next one of their kind finds what they have found
            self._last, self._asked = self._asked, {}

    def of(self, constraints: str, gpu_types: tuple[str, ...], find: Callable[[], _Nodes]) -> _Nodes:
        """The nodes that such jobs may use, which `find` works out; None for all."""
        kind = constraints, gpu_types
        if kind not in self._asked:
            self._asked[kind] = self._last[kind] if kind in self._last else find()
        return self._asked[kind]
