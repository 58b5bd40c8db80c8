"""Queries of the history on the tables."""

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, Usage, UseSample, WaitFact
from synergy_dashboard.store.rows import job_of, plain, resize_of, run_of, sample_of
from synergy_dashboard.store.tables import JOBS, RESIZES, RUNS, SAMPLES, USE, WAITS

Namespaces = Collection[str] | None
_HOUR = 3600.0


def newest_job(connection: Connection, namespace: str, name: str) -> JobFact | None:
    """The job of that name that was created last."""
    named = (JOBS.c.namespace == namespace) & (JOBS.c.name == name)
    query = sa.select(JOBS).where(named).order_by(JOBS.c.created_s.desc(), JOBS.c.uid).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else job_of(row)


def namespaces(connection: Connection, most: int) -> set[str]:
    """Namespaces that have or had jobs. Of more than `most` those of the newest jobs."""
    newest = sa.func.max(JOBS.c.created_s).desc()
    query = sa.select(JOBS.c.namespace).group_by(JOBS.c.namespace).order_by(newest, JOBS.c.namespace).limit(most)
    return set(connection.execute(query).scalars())


def jobs(
    connection: Connection, since_s: float, until_s: float, namespaces: Namespaces, most: int, *, after: JobFact | None
) -> list[JobFact]:
    """Jobs that were created in that time, by creation and uid: the first `most`, or those that follow `after`."""
    place = JOBS.c.created_s, JOBS.c.uid
    created = (JOBS.c.created_s >= since_s) & (JOBS.c.created_s < until_s)
    query = sa.select(JOBS).where(created, *_within(namespaces)).order_by(*place).limit(most)
    if after is not None:
        query = query.where(sa.tuple_(*place) > sa.tuple_(sa.literal(after.created_s), sa.literal(after.uid)))
    return [job_of(row) for row in connection.execute(query).mappings()]


def runs(
    connection: Connection, since_s: float, until_s: float, namespaces: Namespaces, most: int
) -> list[tuple[JobFact, RunFact]]:
    """Runs that held GPUs in that time, each with its job. Of more than `most` those that ended last, the open ones
    first."""
    query = (
        sa.select(RUNS, *(column.label(f"job_{column.name}") for column in JOBS.columns))
        .join(JOBS, JOBS.c.uid == RUNS.c.uid)
        .where(RUNS.c.granted_s < until_s, _open_or_after(RUNS.c.ended_s, since_s), *_within(namespaces))
        .order_by(RUNS.c.ended_s.desc().nulls_first(), RUNS.c.granted_s.desc(), RUNS.c.uid, RUNS.c.run)
        .limit(most)
    )
    found = [(_job_beside(row), run_of(row)) for row in connection.execute(query).mappings()]
    return sorted(found, key=lambda one: (one[1].granted_s, one[1].uid, one[1].run))


def waits(
    connection: Connection, since_s: float, until_s: float, namespaces: Namespaces, most: int
) -> list[tuple[JobFact, WaitFact]]:
    """Waits that began in that time, each with its job. Of more than `most` the newest."""
    began = (WAITS.c.since_s >= since_s) & (WAITS.c.since_s < until_s)
    query = (
        sa.select(WAITS, *(column.label(f"job_{column.name}") for column in JOBS.columns))
        .join(JOBS, JOBS.c.uid == WAITS.c.uid)
        .where(began, *_within(namespaces))
        .order_by(WAITS.c.since_s.desc(), WAITS.c.uid.desc())
        .limit(most)
    )
    return [(_job_beside(row), plain(WaitFact, row)) for row in connection.execute(query).mappings()][::-1]


def runs_of(connection: Connection, uid: str) -> list[RunFact]:
    """By number."""
    query = sa.select(RUNS).where(RUNS.c.uid == uid).order_by(RUNS.c.run)
    return [run_of(row) for row in connection.execute(query).mappings()]


def resizes_of(connection: Connection, uid: str) -> list[ResizeFact]:
    """By time."""
    query = sa.select(RESIZES).where(RESIZES.c.uid == uid).order_by(RESIZES.c.at_s, RESIZES.c.run)
    return [resize_of(row) for row in connection.execute(query).mappings()]


def resizes(
    connection: Connection, since_s: float, until_s: float, namespaces: Namespaces, most: int
) -> list[tuple[JobFact, ResizeFact]]:
    """Resizes in that time, each with its job. Of more than `most` the newest."""
    query = (
        sa.select(RESIZES, *(column.label(f"job_{column.name}") for column in JOBS.columns))
        .join(JOBS, JOBS.c.uid == RESIZES.c.uid)
        .where(RESIZES.c.at_s >= since_s, RESIZES.c.at_s < until_s, *_within(namespaces))
        .order_by(RESIZES.c.at_s.desc(), RESIZES.c.uid.desc(), RESIZES.c.run.desc())
        .limit(most)
    )
    return [(_job_beside(row), resize_of(row)) for row in connection.execute(query).mappings()][::-1]


def resized(connection: Connection, since_s: float, until_s: float, namespaces: Namespaces) -> set[str]:
    """Jobs of which a run was resized in that time."""
    inside = (RESIZES.c.at_s >= since_s) & (RESIZES.c.at_s < until_s)
    query = sa.select(JOBS.c.uid).where(sa.exists().where(RESIZES.c.uid == JOBS.c.uid, inside), *_within(namespaces))
    return set(connection.execute(query).scalars())


def waits_of(connection: Connection, uid: str) -> list[WaitFact]:
    """By time."""
    query = sa.select(WAITS).where(WAITS.c.uid == uid).order_by(WAITS.c.since_s)
    return [plain(WaitFact, row) for row in connection.execute(query).mappings()]


def samples_of(connection: Connection, uid: str, most: int) -> list[Sample]:
    """At most `most` samples: every n-th one, including the newest."""
    own = SAMPLES.c.uid == uid
    there = connection.execute(sa.select(sa.func.count()).select_from(SAMPLES).where(own)).scalar_one()
    back = sa.func.row_number().over(order_by=SAMPLES.c.at_s.desc()).label("back")
    numbered = sa.select(SAMPLES, back).where(own).subquery()
    query = sa.select(numbered).where(_nth(numbered.c.back, there, most)).order_by(numbered.c.at_s)
    return [sample_of(row) for row in connection.execute(query).mappings()]


def use(connection: Connection, since_s: float, until_s: float, most: int) -> list[UseSample]:
    """At most `most` moments: every n-th one, including the newest."""
    inside = (USE.c.at_s >= since_s) & (USE.c.at_s < until_s)
    there = connection.execute(sa.select(sa.func.count(USE.c.at_s.distinct())).where(inside)).scalar_one()
    back = sa.func.dense_rank().over(order_by=USE.c.at_s.desc()).label("back")
    numbered = sa.select(USE, back).where(inside).subquery()
    query = sa.select(numbered).where(_nth(numbered.c.back, there, most)).order_by(numbered.c.at_s, numbered.c.gpu_type)
    return [plain(UseSample, row) for row in connection.execute(query).mappings()]


def usage(connection: Connection, since_s: float, until_s: float, namespaces: Namespaces) -> list[Usage]:
    """Use by tenant and namespace. A job's GPUs count from the grant to the end of each run, because no other job can
    have them meanwhile."""
    held = RUNS.c.gpus * _overlap(RUNS.c.granted_s, RUNS.c.ended_s, since_s, until_s)
    known = (RUNS.c.steps_per_s > 0) & (RUNS.c.proportional_steps_per_s > 0) & (RUNS.c.purpose == "Train")
    gain = sa.case((known, RUNS.c.steps_per_s / sa.func.nullif(RUNS.c.proportional_steps_per_s, 0) - 1), else_=0.0)
    preempted = (RUNS.c.revoked_s >= since_s) & (RUNS.c.revoked_s < until_s)
    of_runs = _by_tenant(
        RUNS,
        [
            sa.func.sum(held),
            sa.func.sum(held * gain),
            sa.func.count(),
            sa.func.sum(sa.case((preempted, 1), else_=0)),
        ],
        (RUNS.c.granted_s < until_s) & _open_or_after(RUNS.c.ended_s, since_s),
        namespaces,
    )
    of_waits = _by_tenant(
        WAITS,
        [sa.func.sum(_overlap(WAITS.c.since_s, WAITS.c.until_s, since_s, until_s))],
        (WAITS.c.since_s < until_s) & _open_or_after(WAITS.c.until_s, since_s),
        namespaces,
    )
    existed = (JOBS.c.created_s < until_s) & _open_or_after(JOBS.c.deleted_s, since_s)
    ended = (JOBS.c.finished_s >= since_s) & (JOBS.c.finished_s < until_s)
    of_jobs = (
        sa.select(JOBS.c.tenant, JOBS.c.namespace, sa.func.count(), sa.func.sum(sa.case((ended, 1), else_=0)))
        .where(existed, *_within(namespaces))
        .group_by(JOBS.c.tenant, JOBS.c.namespace)
    )
    there: dict[tuple[str, str], Any] = {(row[0], row[1]): tuple(row[2:]) for row in connection.execute(of_jobs)}
    found: dict[tuple[str, str], Any] = {(row[0], row[1]): tuple(row[2:]) for row in connection.execute(of_runs)}
    waited: dict[tuple[str, str], float] = {(row[0], row[1]): float(row[2]) for row in connection.execute(of_waits)}
    rows = []
    for key in sorted(found.keys() | waited.keys() | there.keys()):
        gpu_seconds, gained, runs_there, preemptions = found.get(key, (0.0, 0.0, 0, 0))
        jobs_there, finished = there.get(key, (0, 0))
        rows.append(
            Usage(
                tenant=key[0],
                namespace=key[1],
                gpu_hours=float(gpu_seconds) / _HOUR,
                waiting_hours=waited.get(key, 0.0) / _HOUR,
                gained_gpu_hours=float(gained) / _HOUR,
                runs=int(runs_there),
                preemptions=int(preemptions),
                jobs=int(jobs_there),
                finished=int(finished),
            )
        )
    return rows


def _job_beside(row: RowMapping) -> JobFact:
    """The job of a row that has another fact first."""
    return job_of({c.name: row[f"job_{c.name}"] for c in JOBS.columns})


def first_s(connection: Connection, namespaces: Namespaces) -> float | None:
    """The earliest time of a run or a wait of these namespaces; of all of them, or a sample of use."""
    if namespaces is None:
        queries = [sa.select(sa.func.min(column)) for column in (RUNS.c.granted_s, WAITS.c.since_s, USE.c.at_s)]
    else:
        queries = [
            sa.select(sa.func.min(column)).join(JOBS, JOBS.c.uid == uid).where(*_within(namespaces))
            for column, uid in ((RUNS.c.granted_s, RUNS.c.uid), (WAITS.c.since_s, WAITS.c.uid))
        ]
    found = [connection.execute(query).scalar() for query in queries]
    return min((one for one in found if one is not None), default=None)


def _by_tenant(
    table: sa.Table, sums: Sequence[sa.ColumnElement[Any]], where: sa.ColumnElement[bool], namespaces: Namespaces
) -> sa.Select[Any]:
    return (
        sa.select(JOBS.c.tenant, JOBS.c.namespace, *sums)
        .select_from(table.join(JOBS, JOBS.c.uid == table.c.uid))
        .where(where, *_within(namespaces))
        .group_by(JOBS.c.tenant, JOBS.c.namespace)
    )


def _overlap(
    begin: sa.ColumnElement[float], end: sa.ColumnElement[float | None], since_s: float, until_s: float
) -> sa.ColumnElement[float]:
    """Seconds of [`begin`, `end`) within [`since_s`, `until_s`)."""
    first = sa.case((begin < since_s, since_s), else_=begin)
    last = sa.case((end.is_(None) | (end > until_s), until_s), else_=end)
    return sa.case((last > first, last - first), else_=0.0)


def _open_or_after(end: sa.ColumnElement[float | None], since_s: float) -> sa.ColumnElement[bool]:
    return end.is_(None) | (end >= since_s)


def _within(namespaces: Namespaces) -> list[sa.ColumnElement[bool]]:
    return [] if namespaces is None else [JOBS.c.namespace.in_(sorted(namespaces))]


def _nth(back: sa.ColumnElement[int], there: int, most: int) -> sa.ColumnElement[bool]:
    step = max(1, -(-there // max(1, most)))
    return (back - 1) % step == 0


def size_bytes(connection: Connection) -> int:
    """SQLite's file without its write-ahead log, or PostgreSQL's database."""
    query = "SELECT pg_database_size(current_database())"
    if connection.dialect.name == "sqlite":
        query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    return int(connection.exec_driver_sql(query).scalar_one())
