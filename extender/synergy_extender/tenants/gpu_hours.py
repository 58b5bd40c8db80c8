"""GPU-hours of a tenant over the last day and week, counted from what it uses. Pure.

The counts stand in the Tenant's status, so a new leader goes on from there. They take the same space however long they
are kept: an entry for each of the last hours and days.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from synergy_api.resources.tenant_status import DAYS_KEPT, HOURS_KEPT, MOST_TYPES, GpuHours, UsePeriod
from synergy_api.timestamps import format_time, parse_time

_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
MOST_GAP_S: Final = 900.0
"""Time without a count that is counted with the use before it. Without a leader, runs end with their leases sooner."""
_DIGITS: Final = 9
"""Of hours: use is counted several times a second, and a coarser rounding would add up."""


def counted(hours: GpuHours | None, used: Mapping[str, int], now: float) -> GpuHours | None:
    """The counts at `now` (Unix time) of a tenant that has used these GPUs by type since the last count. None if it has
    never used any. After a longer gap than `MOST_GAP_S` the rest of it counts as without use."""
    if hours is None:
        return GpuHours(counted_until=format_time(now)) if used else None
    since = parse_time(hours.counted_until)
    if now <= since:
        return hours
    until = min(now, since + MOST_GAP_S)
    by_hour = _kept(_added(hours.hours, used, (since, until), _HOUR_S), (now - _DAY_S) // _HOUR_S)[-HOURS_KEPT:]
    by_day = _kept(_added(hours.days, used, (since, until), _DAY_S), (now - 7 * _DAY_S) // _DAY_S)[-DAYS_KEPT:]
    return GpuHours(
        day=_total(by_hour, now - _DAY_S, _HOUR_S),
        week=_total(by_day, now - 7 * _DAY_S, _DAY_S),
        counted_until=format_time(now),
        hours=by_hour,
        days=by_day,
    )


def _added(
    periods: Iterable[UsePeriod], used: Mapping[str, int], between: tuple[float, float], length_s: int
) -> dict[int, dict[str, float]]:
    """GPU-hours of each period by its number, with those of this use."""
    found = {one.number: dict(one.gpu_hours) for one in periods}
    since, until = between
    for number in range(int(since // length_s), int(until // length_s) + 1) if used else ():
        seconds = min(until, (number + 1) * length_s) - max(since, number * length_s)
        if seconds <= 0.0:
            continue
        period = found.setdefault(number, {})
        for kind, gpus in used.items():
            if kind in period or len(period) < MOST_TYPES:
                period[kind] = round(period.get(kind, 0.0) + gpus * seconds / _HOUR_S, _DIGITS)
    return found


def _kept(periods: Mapping[int, Mapping[str, float]], oldest: float) -> list[UsePeriod]:
    """Those that the window still reaches."""
    return [UsePeriod(number=number, gpu_hours=dict(periods[number])) for number in sorted(periods) if oldest <= number]


def _total(periods: Iterable[UsePeriod], since: float, length_s: int) -> dict[str, float]:
    """The sum from `since` on. The first period counts with the part of it that is later."""
    totals: dict[str, float] = {}
    for one in periods:
        part = min(1.0, max(0.0, (one.number + 1) * length_s - since) / length_s)
        for kind, hours in one.gpu_hours.items():
            totals[kind] = totals.get(kind, 0.0) + part * hours
    return {kind: round(totals[kind], 2) for kind in list(totals)[:MOST_TYPES]}
