"""People, namespaces, neighbours and observers on the devcluster."""
