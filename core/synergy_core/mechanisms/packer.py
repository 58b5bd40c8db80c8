"""Seats the chosen jobs one by one, the largest demand first (Synergy, section 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.demotion import demote
from synergy_core.mechanisms.statement import Packing, shares_of
from synergy_core.model.config import Mode
from synergy_core.model.placement import Rooms, Seats, nodes_needed
from synergy_core.model.pool import Booking, Pool
from synergy_core.model.resources import Vector, times
from synergy_core.selection.contender import Contender
from synergy_core.selection.diagnosis import choose_for, free_to, promise_room
from synergy_core.selection.rounds import PoolSelection


class Demands(Protocol):
    """What a mechanism gives a job, in amounts per GPU."""

    def wish(self, contender: Contender, pool: Pool) -> Vector | None:
        """What the job should have if that fits; None where there is nothing above the least."""

    def least(self, contender: Contender, pool: Pool, nodes: tuple[int, ...]) -> Vector:
        """What the job must have on these nodes; never above its promise there."""

    def least_by_node(self, contender: Contender, pool: Pool) -> NDArray[np.int64]:
        """`least` of each node alone (nodes x dimensions), or a lower bound of it."""

    def seats(self, packing: Packing, contenders: Sequence[Contender]) -> Mapping[Contender, Seats]:
        """Nodes that are better than others for some of those who may go anywhere; taken where they have the GPUs."""


class Packer:
    """Packs one pool's selection."""

    def __init__(self, selection: PoolSelection, demands: Demands) -> None:
        self._selection = selection
        self._demands = demands
        self._pool = selection.reservations.pool
        self._packing = Packing(selection)
        self._advised: Mapping[Contender, Seats] = {}

    def pack(self, mode: Mode) -> Packing:
        """Seat everyone: those whose nodes are given, then those who may go anywhere."""
        chosen = self._selection
        bound = {
            contender: seats
            for contender, seats in chosen.seated.items()
            if contender.on(self._pool).hard or contender.pods_matter
        }
        loose = {contender: seats for contender, seats in chosen.seated.items() if contender not in bound}
        for contender in chosen.staying:
            if mode == "fill" or contender.is_profile_run or contender in chosen.pinned:
                self._leave(contender)
            else:
                bound[contender] = _seats_held(contender)
        self._settle_all(bound)
        mark = self._packing.mark()
        for contender, seats in loose.items():
            self._packing.unbind(contender.on(self._pool).booking(seats))
        self._advised = self._demands.seats(self._packing, [*chosen.floating, *loose])
        if not self._place_all([*chosen.floating, *loose]) or (loose and self._shuts_out_needlessly()):
            self._packing.undo_to(mark)
            self._advised = {}
            self._settle_all(loose)
            if not self._place_all(chosen.floating):
                raise RuntimeError(f"a job that was promised room on {self._pool.gpu_type} cannot be seated")
        return self._packing

    def _in_order(self, contenders: list[Contender]) -> list[Contender]:
        if len(contenders) < 2:
            return contenders

        def size(contender: Contender) -> tuple[object, ...]:
            demand = self._demands.wish(contender, self._pool) or self._pool.best_share
            is_advised = contender in self._advised
            return (not is_advised, -contender.gpus, *times(demand, -contender.gpus), contender.name)

        return sorted(contenders, key=size)

    # Jobs whose nodes are given

    def _leave(self, contender: Contender) -> None:
        """Seat a job of fill mode, a profile run or a pinned job with what it holds; it gets nothing more."""
        held: Booking = contender.held.booking if contender.held is not None else ()
        self._packing.seat(contender, held, contender.cut_down)

    def _settle_all(self, bound: dict[Contender, Seats]) -> None:
        for contender in self._in_order(list(bound)):
            if not self._settle(contender, bound[contender]):
                raise RuntimeError(f"{contender.name} was promised its nodes and does not fit there")

    def _settle(self, contender: Contender, seats: Seats) -> bool:
        """Seat a job on the given nodes: with its wish, else with its least, else by demoting others there."""
        nodes = tuple(node for node, _ in seats)
        wish = self._demands.wish(contender, self._pool)
        least = self._demands.least(contender, self._pool, nodes)
        if wish is not None and self._packing.affords(seats, wish) and self._packing.may_have(contender, seats, wish):
            self._packing.seat(contender, shares_of(seats, wish), shares_of(seats, least))
            return True
        if self._packing.affords(seats, least) or demote(self._packing, seats, least):
            self._packing.seat(contender, shares_of(seats, least), shares_of(seats, least))
            return True
        return False

    # Jobs that may go anywhere

    def _place_all(self, contenders: list[Contender]) -> bool:
        return all(self._place(contender) for contender in self._in_order(contenders))

    def _shuts_out_needlessly(self) -> bool:
        """Whether a job waits that would have room beside the nodes which the others ended up on."""
        reservations = self._packing.reservations
        return any(
            choose_for(contender, self._pool, *promise_room(contender, reservations)) is not None
            for contender in self._selection.turned_away
        )

    def _place(self, contender: Contender) -> bool:
        """Find nodes: the advised ones, else where the wish fits, else where the least fits, else by GPUs alone."""
        slots = self._slots(contender)
        advised = self._advised.get(contender, ())
        if advised and all(slots[node] >= gpus for node, gpus in advised):
            return self._promised(contender, advised)
        wish = self._demands.wish(contender, self._pool)
        seats = None if wish is None else self._find(contender, slots, np.array(wish, dtype=np.int64))
        if seats is None:
            seats = self._find(contender, slots, self._demands.least_by_node(contender, self._pool))
        if seats is None:
            seats = choose_for(contender, self._pool, slots, self._packing.emptiness())
        return seats is not None and self._promised(contender, seats)

    def _promised(self, contender: Contender, seats: Seats) -> bool:
        self._packing.promise(contender.on(self._pool).booking(seats))
        return self._settle(contender, seats)

    def _slots(self, contender: Contender) -> Rooms:
        slots = self._packing.reservations.slots
        anywhere = contender.job.nodes is None and not contender.kept_off
        return slots if anywhere else np.where(free_to(contender, self._pool), slots, 0)

    def _find(self, contender: Contender, slots: Rooms, per_gpu: NDArray[np.int64]) -> Seats | None:
        """Nodes that can give `per_gpu` (one vector, or one per node), no more of them than the GPUs force."""
        room = np.minimum(slots, (self._packing.free // per_gpu).min(axis=1))
        place = contender.place(self._pool)
        seats = choose_for(contender, self._pool, room, self._packing.emptiness())
        if seats is None or place == "spread" or len(seats) == 1:
            return seats
        return seats if len(seats) <= nodes_needed(contender.gpus, slots) else None


def _seats_held(contender: Contender) -> Seats:
    return contender.held.seats if contender.held is not None else ()
