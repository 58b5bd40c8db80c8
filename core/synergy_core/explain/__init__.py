"""Why not: the plan's entries for jobs that wait and jobs that will be late."""
