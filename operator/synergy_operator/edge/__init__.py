"""The I/O around the reconcile: kopf's handlers, the watch caches, the work queue, the executor, metrics."""
