"""The controller of worker clusters: jobs of a hub cluster run in the cluster where they start soonest by forecast."""
