"""What plans have found of kinds of jobs and of their pairs, for the next ones."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from synergy_core.colocation.kinds.members import MemberTerms
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job

_MOST_KINDS = 1500
"""Their pairs take 18 MB for each GPU type. A plan asks for no more (`combinations`), and all of its own are kept."""


@dataclass(slots=True, eq=False)
class KnownKind:
    """What is known of the jobs of one kind."""

    job: Job
    """Is kept, so that no other job comes to have the ids in the kind."""
    place: int
    """Row and column of the arrays of pairs."""
    asked: int = 0
    """The last plan that asked for it."""
    terms: dict[str, MemberTerms] = field(default_factory=dict)
    """By GPU type, what they need there, where that was found."""


class KnownPairs:
    """What jobs of two kinds keep on a GPU type: found once by a caller, as long as its nodes and predictions are the
    same.

    Kinds that neither this plan nor the last one asked for are forgotten. A pair takes 16 bytes for each GPU type, a
    kind not much more than its matrices do.
    """

    def __init__(self) -> None:
        self._nodes: Mapping[str, object] = {}
        self._predictions: Mapping[str, object] = {}
        self._plan = 0
        self._kinds: dict[Hashable, KnownKind] = {}
        self._kept: dict[str, Floats] = {}
        """By GPU type, what a job of the row's kind keeps beside one of the column's; NaN where that is not known."""

    def begin(self, nodes: Mapping[str, object], predictions: Mapping[str, object]) -> None:
        """Begin a plan: by GPU type, what follows from nodes or predictions is forgotten where these have changed."""
        self._plan += 1
        other_nodes = _changed(self._nodes, nodes)
        for gpu_type in other_nodes:
            for kind in self._kinds.values():
                kind.terms.pop(gpu_type, None)
        for gpu_type in other_nodes | _changed(self._predictions, predictions):
            self._kept.pop(gpu_type, None)
        self._nodes, self._predictions = nodes, predictions

    def ask(self, kinds: Mapping[Hashable, Job]) -> list[KnownKind]:
        """What is known of the kinds of a plan, each given with one of its jobs."""
        before = len(self._kinds)
        asked = []
        for kind, job in kinds.items():
            one = self._kinds.get(kind)
            if one is None:
                one = self._kinds[kind] = KnownKind(job, place=-1)
            one.asked = self._plan
            asked.append(one)
        own = sum(one.asked == self._plan for one in self._kinds.values())
        newest_first = sorted(self._kinds.items(), key=lambda one: -one[1].asked)[: max(own, _MOST_KINDS)]
        left = {kind: one for kind, one in newest_first if one.asked >= self._plan - 1}
        if not len(left) == len(self._kinds) == before:
            self._kinds = left
            self._rearrange()
        return asked

    def _rearrange(self) -> None:
        """Give the kinds new places."""
        before = np.array([one.place for one in self._kinds.values()], dtype=np.int64)
        for place, one in enumerate(self._kinds.values()):
            one.place = place
        self._kept = {gpu_type: _moved(kept, before) for gpu_type, kept in self._kept.items()}

    def kept(self, kinds: Sequence[KnownKind], gpu_type: str, find: Callable[[Ints], Floats]) -> Floats:
        """K x K: what a job of one kind keeps beside one of another on a type, of kinds that this plan asked for.

        `find` answers for 2 x P pairs of numbers of these kinds, of which nothing is known yet.
        """
        known = self._kept.get(gpu_type)
        if known is None:
            known = self._kept[gpu_type] = np.full((len(self._kinds),) * 2, np.nan)
        places = np.array([one.place for one in kinds], dtype=np.int64)
        kept: Floats = known[np.ix_(places, places)]
        two = np.stack(np.nonzero(np.triu(np.isnan(kept))))
        if two.size:
            kept[two[0], two[1]], kept[two[1], two[0]] = find(two)
            known[np.ix_(places, places)] = kept
        return kept


def _changed(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """The GPU types that have another value now, or a value only before or now."""
    return {gpu_type for gpu_type in before.keys() | now.keys() if before.get(gpu_type) != now.get(gpu_type)}


def _moved(kept: Floats, before: Ints) -> Floats:
    """The array with rows and columns in new places, each with its place before; -1 for a new one."""
    there = np.flatnonzero(before >= 0)
    moved = np.full((len(before), len(before)), np.nan)
    moved[np.ix_(there, there)] = kept[np.ix_(before[there], before[there])]
    return moved
