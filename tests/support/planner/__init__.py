"""Snapshots, problems and plans for tests of the planner, and what every plan must keep."""
