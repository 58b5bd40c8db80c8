"""The planner in a process of its own: what is asked, and how long an answer may take."""
