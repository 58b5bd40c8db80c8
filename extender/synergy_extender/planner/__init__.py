"""The planner in a process of its own: the request, and how long an answer may take."""
