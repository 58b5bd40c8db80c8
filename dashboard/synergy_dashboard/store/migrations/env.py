"""Alembic runs this with the connection of `synergy_dashboard.store.migrate`."""

from alembic import context

from synergy_dashboard.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
