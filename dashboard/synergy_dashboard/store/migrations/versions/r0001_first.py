"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_SHAPE: dict[str, dict[str, str]] = {
    "jobs": {
        "uid": "key",
        "namespace": "text",
        "name": "text",
        "tenant": "text",
        "created_s": "real",
        "gpus": "number",
        "gpu_types": "text",
        "steps": "number",
        "weight": "real",
        "fingerprint": "text",
        "phase": "text",
        "finished_s": "real?",
        "deleted_s": "real?",
        "steps_done": "number",
        "preemptions": "number",
    },
    "runs": {
        "uid": "key",
        "run": "number key",
        "purpose": "text",
        "gpu_type": "text",
        "gpus": "number",
        "shares": "text",
        "granted_s": "real",
        "started_s": "real?",
        "revoked_s": "real?",
        "revoked_reason": "text",
        "ended_s": "real?",
        "outcome": "text",
        "reason": "text",
        "steps_per_s": "real",
        "proportional_steps_per_s": "real",
        "partners": "text",
        "seen": "truth",
    },
    "resizes": {"uid": "key", "run": "number key", "at_s": "real key", "shares": "text"},
    "waits": {
        "uid": "key",
        "since_s": "real key",
        "until_s": "real?",
        "reason": "text",
        "message": "text",
        "position": "number?",
    },
    "samples": {
        "uid": "key",
        "at_s": "real key",
        "steps": "number",
        "steps_per_s": "real",
        "cpu_millis": "number",
        "memory_bytes": "number",
    },
    "use_samples": {
        "at_s": "real key",
        "gpu_type": "key",
        "gpus": "number",
        "gpus_given": "number",
        "gpus_wanted": "number",
        "waiting": "number",
    },
    "objects": {"namespace": "key", "name": "key", "body": "text"},
    "positions": {"name": "key", "value": "text"},
}
_INDEXES: dict[str, tuple[str, ...]] = {
    "jobs_by_name": ("jobs", "namespace", "name", "created_s"),
    "jobs_by_creation": ("jobs", "created_s"),
    "runs_by_grant": ("runs", "granted_s"),
    "runs_by_end": ("runs", "ended_s"),
    "waits_by_start": ("waits", "since_s"),
    "waits_by_end": ("waits", "until_s"),
    "samples_by_time": ("samples", "at_s"),
}


def upgrade() -> None:
    """Make the tables."""
    for table, columns in _SHAPE.items():
        op.create_table(table, *(_column(name, kind) for name, kind in columns.items()))
    for index, (table, *names) in _INDEXES.items():
        op.create_index(index, table, names)


def _column(name: str, kind: str) -> sa.Column[Any]:
    types: dict[str, sa.types.TypeEngine[Any]] = {
        "key": sa.String(),
        "text": sa.Text(),
        "number": sa.BigInteger(),
        "real": sa.Double(),
        "truth": sa.Boolean(),
    }
    base = kind.removesuffix(" key").removesuffix("?")
    return sa.Column(
        name, types[base], primary_key=kind.endswith("key"), nullable=kind.endswith("?"), autoincrement=False
    )
