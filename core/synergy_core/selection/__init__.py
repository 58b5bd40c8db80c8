"""Selects the jobs of a round: which stay, leave and enter, under quotas and preemption protection."""
