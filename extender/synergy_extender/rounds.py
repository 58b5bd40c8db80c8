"""Rounds: stretches of Unix time of one length, the same for every replica without any talk between them."""

import math
from dataclasses import dataclass

from synergy_core.model.config import Mode

_LEAD_SHARE = 10
_LEAD_LEAST_S = 2.0
_LEAD_MOST_S = 15.0


@dataclass(frozen=True)
class Rounds:
    """Round k covers [k, k + 1) times `seconds` of Unix time."""

    seconds: int

    @property
    def lead_s(self) -> float:
        """How long before its start a round is planned."""
        return min(max(_LEAD_LEAST_S, self.seconds / _LEAD_SHARE), _LEAD_MOST_S)

    @property
    def solve_s(self) -> float:
        """How long a plan may wait for a new allocation: the rest of the lead is for packing and writing."""
        return self.lead_s / 2

    def at(self, now: float) -> int:
        """The round that `now` falls into."""
        return math.floor(now / self.seconds)

    def start(self, index: int) -> float:
        """When a round begins."""
        return float(index * self.seconds)

    def end(self, index: int) -> float:
        """When a round ends: until then runs hold their places for sure."""
        return float((index + 1) * self.seconds)

    def plan_time(self, index: int) -> float:
        """When a round is planned: `lead_s` before it begins."""
        return self.start(index) - self.lead_s

    def due(self, now: float) -> int:
        """The newest round whose plan time has come."""
        return math.floor((now + self.lead_s) / self.seconds)


class Timetable:
    """Which round is planned next. `planned` is the newest that was; a step of the clock costs one round at most."""

    def __init__(self, rounds: Rounds, now: float) -> None:
        self.rounds = rounds
        self.planned = rounds.at(now)

    def due(self, now: float) -> int | None:
        """The round whose plan is due at `now`, or None where the newest plan still serves.

        A clock that was set back by more than a round finds a round planned that is far ahead. That one never comes
        while this clock is right: the round of `now` counts as planned instead, and the next one is planned in time.
        """
        due = self.rounds.due(now)
        if self.planned > due + 1:
            self.planned = due
        return due if due > self.planned else None

    def plan_at(self, now: float) -> tuple[Mode, int]:
        """What is planned at `now`: the round that is due, or free room in the one that was planned last."""
        due = self.due(now)
        return ("fill", self.planned) if due is None else ("round", due)

    @property
    def next_at(self) -> float:
        """When the next round is planned."""
        return self.rounds.plan_time(self.planned + 1)


@dataclass(frozen=True)
class Moment:
    """When a decision is made: `round_index` is the newest round that has been planned or is being planned."""

    now: float
    rounds: Rounds
    round_index: int
