"""How often jobs may be preempted, and which jobs give way at once to a job of an urgent class."""
