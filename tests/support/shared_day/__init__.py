"""A day in a shared cluster: teams of an organisation, their jobs, what an observer sees, and the same simulated."""
