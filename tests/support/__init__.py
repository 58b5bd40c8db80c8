"""What several suites use: an observer of the cluster, waiting for a condition, manifests."""
