"""Checkpoint files: written whole, in versions, and by the newest run only."""
