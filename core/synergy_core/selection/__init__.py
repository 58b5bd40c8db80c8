"""Who runs this round: which jobs stay, leave and enter, under quotas and preemption protection."""
