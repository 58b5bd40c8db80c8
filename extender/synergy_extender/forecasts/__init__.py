"""Estimated starts of waiting jobs: the simulator in a process of its own, and the errors of past forecasts."""
