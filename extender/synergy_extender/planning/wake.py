"""When the planning loop looks at the cluster again though no change woke it."""

from collections.abc import Iterable
from typing import Final

from synergy_api.timestamps import parse_time
from synergy_extender.cluster.run_state import RunState, run_state, service_of
from synergy_extender.cluster.views import JobView
from synergy_extender.rounds import Timetable

_HEARTBEAT_S: Final = 5.0


def next_wake(
    now: float,
    jobs: Iterable[JobView],
    timetable: Timetable | None,
    again_at: float | None,
    refused_wait_s: float | None,
) -> float:
    """The earliest of: the next round of the timetable, `again_at`, the end of a backoff, the end of the wait after a
    refused write (`refused_wait_s` from now), and the heartbeat. All in Unix time."""
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
