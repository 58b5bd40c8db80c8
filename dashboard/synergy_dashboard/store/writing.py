"""Writes facts into the tables: kept rows are read, merged with the facts and written back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, RowMapping

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Share, WaitFact
from synergy_dashboard.store.bundle import Facts, Position
from synergy_dashboard.store.merge import is_news, merged_job, merged_run, merged_wait
from synergy_dashboard.store.rows import Row, job_of, plain, resize_of, row_of, run_of
from synergy_dashboard.store.tables import JOBS, OBJECTS, POSITIONS, RESIZES, RUNS, SAMPLES, USE, WAITS

WATCHED = "trainingjobs"
_AT_ONCE = 400
"""Maximum number of keys in one query."""


def write_facts(connection: Connection, bundles: Sequence[Facts]) -> None:
    """Merge the facts, in their order, into the kept rows."""
    _write_jobs(connection, [one for bundle in bundles for one in bundle.jobs])
    runs = [one for bundle in bundles for one in bundle.runs]
    resizes = [one for bundle in bundles for one in bundle.resizes]
    kept = _kept_runs(connection, {(a.uid, a.run) for a in runs} | {(b.uid, b.run) for b in resizes})
    changed: dict[tuple[str, int], RunFact] = {}
    for one in runs:
        key = one.uid, one.run
        kept[key] = changed[key] = merged_run(kept.get(key), one)
    _upsert(connection, RUNS, [row_of(one) for one in changed.values()])
    _write_resizes(connection, resizes, kept)
    _write_waits(connection, bundles)
    _upsert(connection, SAMPLES, [row_of(one) for bundle in bundles for one in bundle.samples])
    _upsert(connection, USE, [row_of(one) for bundle in bundles for one in bundle.use])


def write_position(connection: Connection, position: Position) -> None:
    """The recorder's position, with the objects as it saw them last."""
    rows, gone = [], []
    for (namespace, name), item in position.objects.items():
        key = {"namespace": namespace, "name": name}
        if item is None:
            gone.append({f"gone_{field}": value for field, value in key.items()})
        else:
            rows.append(key | {"body": json.dumps(item, separators=(",", ":"))})
    _upsert(connection, OBJECTS, rows)
    if gone:
        at = (OBJECTS.c.namespace == sa.bindparam("gone_namespace")) & (OBJECTS.c.name == sa.bindparam("gone_name"))
        connection.execute(sa.delete(OBJECTS).where(at), gone)
    set_position(connection, WATCHED, position.version)


def set_position(connection: Connection, name: str, value: str) -> None:
    """Keep a position under its name."""
    _upsert(connection, POSITIONS, [{"name": name, "value": value}])


def position(connection: Connection, name: str) -> str:
    """A position by its name; empty if there is none yet."""
    return connection.execute(sa.select(POSITIONS.c.value).where(POSITIONS.c.name == name)).scalar() or ""


def objects(connection: Connection) -> dict[tuple[str, str], dict[str, Any]]:
    """The objects as they were seen last."""
    rows = connection.execute(sa.select(OBJECTS)).mappings()
    return {(row["namespace"], row["name"]): json.loads(row["body"]) for row in rows}


def _write_jobs(connection: Connection, told: Sequence[JobFact]) -> None:
    uids = {one.uid for one in told}
    kept = {row["uid"]: job_of(row) for row in _rows_of(connection, [JOBS.c.uid], uids)}
    for one in told:
        kept[one.uid] = merged_job(kept.get(one.uid), one)
    _upsert(connection, JOBS, [row_of(one) for one in kept.values()])


def _kept_runs(connection: Connection, keys: Iterable[tuple[str, int]]) -> dict[tuple[str, int], RunFact]:
    found = _rows_of(connection, [RUNS.c.uid, RUNS.c.run], keys)
    return {(row["uid"], row["run"]): run_of(row) for row in found}


def _write_resizes(connection: Connection, told: Sequence[ResizeFact], runs: Mapping[tuple[str, int], RunFact]) -> None:
    latest: dict[tuple[str, int], tuple[Share, ...]] = {key: run.shares for key, run in runs.items()}
    keys = {(one.uid, one.run) for one in told}
    found = (resize_of(row) for row in _rows_of(connection, [RESIZES.c.uid, RESIZES.c.run], keys))
    for one in sorted(found, key=lambda one: one.at_s):
        latest[one.uid, one.run] = one.shares
    news = []
    for one in told:
        if is_news(latest.get((one.uid, one.run)), one):
            latest[one.uid, one.run] = one.shares
            news.append(one)
    _upsert(connection, RESIZES, [row_of(one) for one in news])


def _write_waits(connection: Connection, bundles: Sequence[Facts]) -> None:
    told = [one for bundle in bundles for one in bundle.waits]
    found = _rows_of(connection, [WAITS.c.uid], {one.uid for one in told}, WAITS.c.until_s.is_(None))
    opened = {row["uid"]: plain(WaitFact, row) for row in found}
    changed: dict[tuple[str, float], WaitFact] = {}
    for one in told:
        for wait in merged_wait(opened.get(one.uid), one):
            changed[wait.uid, wait.since_s] = wait
            if wait.until_s is None:
                opened[wait.uid] = wait
            else:
                opened.pop(wait.uid, None)
    _upsert(connection, WAITS, [row_of(one) for one in changed.values()])


def _rows_of(
    connection: Connection, columns: Sequence[sa.Column[Any]], keys: Iterable[Any], *more: sa.ColumnElement[bool]
) -> Iterable[RowMapping]:
    """The rows of a table that have one of these keys in the columns."""
    table = columns[0].table
    key = columns[0] if len(columns) == 1 else sa.tuple_(*columns)
    ordered = sorted(keys)
    for first in range(0, len(ordered), _AT_ONCE):
        chosen = key.in_(ordered[first : first + _AT_ONCE])
        yield from connection.execute(sa.select(table).where(chosen, *more)).mappings()


def _upsert(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    if rows:
        connection.execute(_upserting(table, connection.dialect.name), list(rows))


@cache
def _upserting(table: sa.Table, dialect: str) -> sa.Insert:
    of_dialect: Any = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = of_dialect(table)
    keys = [column.name for column in table.primary_key]
    others = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    upserting: sa.Insert = statement.on_conflict_do_update(index_elements=keys, set_=others)
    return upserting
