"""When rounds begin."""

from dataclasses import dataclass
from math import ceil, floor, inf, log2
from typing import Final

_AT_ONCE: Final = 12
"""With `fine` of so many rounds or more, GPUs are filled at once in rounds of the usual length."""


@dataclass(frozen=True, slots=True)
class RoundClock:
    """Rounds of `round_s` seconds; with `fine` of longer ones the farther they are ahead of `begin_s`.

    A forecast of next week needs no plan for each five minutes of it. After `fine` rounds the length doubles, after
    twice as many seconds again, and so on: a round is never longer than 1/`fine` of the time from the beginning to it,
    and a future of n rounds takes about fine x log2(n / fine) plans. The beginning of a long round is also that of a
    short one.
    """

    round_s: float
    begin_s: float = 0.0
    fine: int | None = None

    def length(self, moment: float) -> float:
        """Seconds of the round that contains the moment."""
        if self.fine is None or moment <= self.begin_s:
            return self.round_s
        return self.round_s * 2.0 ** int(log2(1.0 + (moment - self.begin_s) / (self.fine * self.round_s)))

    def start(self, moment: float) -> float:
        """The beginning of the first round that begins at `moment` or later."""
        length = self.length(moment)
        return ceil(moment / length) * length

    def after(self, start: float) -> float:
        """The beginning of the round after the one that begins at `start`."""
        return self.start(start + self.length(start))

    def fill(self, moment: float) -> float:
        """When GPUs that are seen free at `moment` are filled: at once, or in a longer round at its end."""
        step = self.step_s(moment)
        return ceil(moment / step) * step if step else moment

    def seen(self, moment: float, after: float = -inf) -> float:
        """When a simulation sees an event of `moment`: at once, or in a longer round at its nearer end.

        So as many events are seen too early as too late, and the times of a forecast are not late on the whole. The
        job that ends has held its GPUs since `after`, and ends later than that.
        """
        step = self.step_s(moment) if moment < inf else 0.0
        if not step:
            return moment
        nearest = floor(moment / step + 0.5) * step
        return nearest if nearest > after else (floor(after / step) + 1) * step

    def step_s(self, moment: float) -> float:
        """Seconds between the moments at which GPUs are filled; 0: at any time.

        With a small `fine`, which is for many jobs, at the ends of usual rounds too: among so many jobs one ends at
        almost any time.
        """
        length = self.length(moment)
        if self.fine is None or (length == self.round_s and self.fine >= _AT_ONCE):
            return 0.0
        return length
