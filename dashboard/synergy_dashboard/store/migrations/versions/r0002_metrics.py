"""What training scripts report beside their steps."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Samples get metrics; those of before have none."""
    op.add_column("samples", sa.Column("metrics", sa.Text(), nullable=False, server_default="[]"))
