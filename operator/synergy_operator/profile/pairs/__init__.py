"""A new job beside reference jobs on a shared GPU (Gavel, section 6): two profile Jobs at a time."""
