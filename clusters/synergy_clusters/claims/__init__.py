"""Which hub's controller may act in worker clusters: the one whose data is the newest that they know of."""
