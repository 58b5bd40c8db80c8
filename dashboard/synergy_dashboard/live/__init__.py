"""The present of the cluster in memory, as rows, and what changed."""
