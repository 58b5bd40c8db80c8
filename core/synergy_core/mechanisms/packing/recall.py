"""Packs staying jobs as in the last round, where nothing has changed for them (`selection.staying.islands`)."""

from collections.abc import Collection, Iterable

from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.staying.islands import Island, Key, Packed, PackedIsland, PackedPool, islands_of


class Recall:
    """What the last round knows of one packing, and what this one tells the next."""

    def __init__(self, before: PackedPool | None, packing: Packing) -> None:
        self._before = before
        self._packing = packing
        self._islands: dict[Key, Island] = {}
        self._settled: dict[Key, Packed] = {}
        self._known: dict[Key, PackedIsland] = {}
        """What the last round tells of this one."""

    def settle(self, staying: Iterable[QueueEntry], others: Iterable[int]) -> Collection[QueueEntry]:
        """Settle staying jobs as in the last round, where it has settled them; those. On nodes of `others` are jobs
        beside them."""
        if self._before is None:
            return ()
        barred = set(others)
        self._islands = {one.key: one for one in islands_of(staying) if barred.isdisjoint(one.nodes)}
        known = self._before.islands
        self._known = {key: known[key] for key in self._islands if key in known}
        found: set[QueueEntry] = set()
        for key, packed in self._known.items():
            entries = self._islands[key].entries
            self._packing.take_over([(one, packed.settled.assigned[one.info.lasting]) for one in entries])
            found.update(entries)
        self._packing.set_free(packed.settled.free for packed in self._known.values())
        return found

    def note_settled(self) -> None:
        """All staying jobs are settled, and no other job is placed yet."""
        for key, island in self._islands.items():
            if key not in self._known:
                self._settled[key] = self._packed(island)

    def grown(self) -> Collection[QueueEntry]:
        """Give back to staying jobs what they had in the end, where no other job was placed beside them; those."""
        if self._before is None:
            return ()
        self._drop_those_with_newcomers()
        found: set[QueueEntry] = set()
        for key, packed in self._known.items():
            island = self._islands[key]
            for entry in island.entries:
                self._packing.assigned[entry] = packed.grown.assigned[entry.info.lasting]
            found.update(island.entries)
        self._packing.set_free(packed.grown.free for packed in self._known.values())
        return found

    def remember(self) -> None:
        """Tell the next round, once the packing is complete."""
        if self._before is not None:
            told = {
                key: PackedIsland(self._settled[key], self._packed(island))
                for key, island in self._islands.items()
                if key in self._settled
            }
            self._before.islands = self._known | told

    def _drop_those_with_newcomers(self) -> None:
        staying = {entry for island in self._islands.values() for entry in island.entries}
        taken = {node for one, has in self._packing.assigned.items() if one not in staying for node in has.nodes}
        self._islands = {key: one for key, one in self._islands.items() if taken.isdisjoint(one.nodes)}
        self._known = {key: packed for key, packed in self._known.items() if key in self._islands}

    def _packed(self, island: Island) -> Packed:
        packing = self._packing
        return Packed(
            {entry.info.lasting: packing.assigned[entry] for entry in island.entries},
            dict(zip(island.nodes, map(tuple, packing.free[island.nodes].tolist()), strict=True)),
        )
