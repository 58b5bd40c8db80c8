"""The newest resizes of all jobs are found without the others."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the index."""
    op.create_index("resizes_by_time", "resizes", ["at_s"])
