"""From an allocation X to this round: the share of time each job has had and which jobs are due (Gavel, section 5)."""
