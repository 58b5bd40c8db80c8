"""The tables in their newest schema. Migrations make them."""

import sqlalchemy as sa

METADATA = sa.MetaData()


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String, primary_key=True)


def _number_key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


def _time_key(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, primary_key=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _real(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False)


def _time_or_none(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=True)


JOBS = sa.Table(
    "jobs",
    METADATA,
    _key("uid"),
    _text("namespace"),
    _text("name"),
    _text("tenant"),
    _real("created_s"),
    _number("gpus"),
    _text("gpu_types"),
    _number("steps"),
    _real("weight"),
    _text("fingerprint"),
    _text("phase"),
    _time_or_none("finished_s"),
    _time_or_none("deleted_s"),
    _number("steps_done"),
    _number("preemptions"),
    sa.Index("jobs_by_name", "namespace", "name", "created_s"),
    sa.Index("jobs_by_creation", "created_s"),
)
RUNS = sa.Table(
    "runs",
    METADATA,
    _key("uid"),
    _number_key("run"),
    _text("purpose"),
    _text("gpu_type"),
    _number("gpus"),
    _text("shares"),
    _real("granted_s"),
    _time_or_none("started_s"),
    _time_or_none("revoked_s"),
    _text("revoked_reason"),
    _time_or_none("ended_s"),
    _text("outcome"),
    _text("reason"),
    _real("steps_per_s"),
    _real("proportional_steps_per_s"),
    _text("partners"),
    sa.Column("seen", sa.Boolean, nullable=False),
    sa.Index("runs_by_grant", "granted_s"),
    sa.Index("runs_by_end", "ended_s"),
)
RESIZES = sa.Table(
    "resizes",
    METADATA,
    _key("uid"),
    _number_key("run"),
    _time_key("at_s"),
    _text("shares"),
    sa.Index("resizes_by_time", "at_s"),
)
WAITS = sa.Table(
    "waits",
    METADATA,
    _key("uid"),
    _time_key("since_s"),
    _time_or_none("until_s"),
    _text("reason"),
    _text("message"),
    sa.Column("position", sa.BigInteger, nullable=True),
    sa.Index("waits_by_start", "since_s"),
    sa.Index("waits_by_end", "until_s"),
)
SAMPLES = sa.Table(
    "samples",
    METADATA,
    _key("uid"),
    _time_key("at_s"),
    _number("steps"),
    _real("steps_per_s"),
    _number("cpu_millis"),
    _number("memory_bytes"),
    _text("metrics"),
    sa.Index("samples_by_time", "at_s"),
)
USE = sa.Table(
    "use_samples",
    METADATA,
    _time_key("at_s"),
    _key("gpu_type"),
    _number("gpus"),
    _number("gpus_given"),
    _number("gpus_wanted"),
    _number("waiting"),
)
OBJECTS = sa.Table("objects", METADATA, _key("namespace"), _key("name"), _text("body"))
POSITIONS = sa.Table("positions", METADATA, _key("name"), _text("value"))
"""Positions by name: the watched collection's version, and the time up to which samples are thinned."""
