"""The history in a database: SQLite on a volume, or PostgreSQL."""
