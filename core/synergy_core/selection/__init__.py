"""Stage 4, who runs this round: which jobs stay, leave and enter, under quotas and preemption protection."""
