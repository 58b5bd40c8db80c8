"""Which nodes to ask for: what jobs would run if node groups were larger."""
