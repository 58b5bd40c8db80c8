"""Removal of old facts: all facts after the days that they are kept for, samples first to one in five minutes, then to
one an hour."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from synergy_dashboard.store.tables import JOBS, RESIZES, RUNS, SAMPLES, USE, WAITS
from synergy_dashboard.store.writing import position, set_position

DAY_S = 86400.0
THINNED = ((1 * DAY_S, 300.0), (14 * DAY_S, 3600.0))
"""An age, and the interval of which one sample stays when it is older; both in seconds."""


def forget(connection: Connection, before_s: float) -> None:
    """Delete facts that ended before that time: deleted jobs with all their facts, and old facts of the other jobs."""
    gone = sa.select(JOBS.c.uid).where(JOBS.c.deleted_s < before_s)
    for table in (RUNS, RESIZES, WAITS, SAMPLES):
        connection.execute(sa.delete(table).where(table.c.uid.in_(gone)))
    connection.execute(sa.delete(JOBS).where(JOBS.c.deleted_s < before_s))
    connection.execute(sa.delete(RUNS).where(RUNS.c.ended_s < before_s))
    connection.execute(sa.delete(WAITS).where(WAITS.c.until_s < before_s))
    connection.execute(sa.delete(SAMPLES).where(SAMPLES.c.at_s < before_s))
    connection.execute(sa.delete(USE).where(USE.c.at_s < before_s))
    run_is_there = sa.exists().where((RUNS.c.uid == RESIZES.c.uid) & (RUNS.c.run == RESIZES.c.run))
    connection.execute(sa.delete(RESIZES).where(RESIZES.c.at_s < before_s, ~run_is_there))


def thin(connection: Connection, now: float) -> None:
    """Keep the last old sample of each interval. Samples that were thinned before are not read again."""
    for age_s, stretch_s in THINNED:
        name = f"thinned to {stretch_s:.0f} s"
        until_s = (now - age_s) // stretch_s * stretch_s
        since_s = float(position(connection, name) or 0.0)
        if until_s <= since_s:
            continue
        connection.execute(_thinning(SAMPLES, SAMPLES.c.uid, stretch_s, (since_s, until_s)))
        connection.execute(_thinning(USE, USE.c.gpu_type, stretch_s, (since_s, until_s)))
        set_position(connection, name, str(until_s))


def _thinning(table: sa.Table, of: sa.Column[str], stretch_s: float, span: tuple[float, float]) -> sa.Delete:
    later = table.alias("later")
    end_of_stretch = (sa.func.floor(table.c.at_s / stretch_s) + 1) * stretch_s
    there_is_a_later_one = sa.exists().where(
        later.c[of.name] == of, later.c.at_s > table.c.at_s, later.c.at_s < end_of_stretch
    )
    return sa.delete(table).where(table.c.at_s >= span[0], table.c.at_s < span[1], there_is_a_later_one)
