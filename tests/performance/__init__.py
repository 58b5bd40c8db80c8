"""Declared loads with declared ranges of their figures, each a ratio to a reference of the same run."""
