"""The operator's objects, a small world for its pure reconcile, and a stage for its process."""
