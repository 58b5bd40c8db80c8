"""When the planning loop looks at the cluster again."""

from collections.abc import Iterable
from typing import Final

from synergy_api.timestamps import parse_time
from synergy_extender.cluster.run_state import RunState, run_state, service_of
from synergy_extender.cluster.views import JobView
from synergy_extender.rounds import Timetable

DEBOUNCE_S: Final = 0.05
"""From a change to the pass that looks at it: further changes come in the meantime."""
_HEARTBEAT_S: Final = 5.0
_REST_MOST_S: Final = 1.0
_IDLE_SHARE: Final = 2.0


def next_wake(
    now: float,
    jobs: Iterable[JobView],
    timetable: Timetable | None,
    again_at: float | None,
    refused_wait_s: float | None,
) -> float:
    """Though no change came, the earliest of: the next round of the timetable, `again_at`, the end of a backoff, the
    end of the wait after a refused write (`refused_wait_s` from now), and the heartbeat. All in Unix time."""
    times = [now + _HEARTBEAT_S]
    if again_at is not None:
        times.append(again_at)
    if timetable is not None:
        times.append(timetable.next_at)
    if refused_wait_s is not None:
        times.append(now + refused_wait_s)
    for job in jobs:
        if job.at_rest:
            continue
        retry_at = service_of(job).retry_at
        if retry_at is not None and run_state(job, now) is RunState.BACKING_OFF:
            times.append(parse_time(retry_at))
    return min(times)


def rest_s(computed_s: float, planned_s: float) -> float:
    """How long a pass keeps the next one away that computed so long in this process, and in the planner's.

    While changes stream in, two parts in three of the first time are left to the verbs, which share the interpreter,
    and half of the second, in which they share the cores only and go first. The rest begins with the end of a pass, so
    that the first change after a quiet time does not wait for it.
    """
    return min(_IDLE_SHARE * computed_s + planned_s, _REST_MOST_S)
