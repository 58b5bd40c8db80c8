"""Commands that call the planner and the solver once, on a file."""
