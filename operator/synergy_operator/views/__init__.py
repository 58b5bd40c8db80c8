"""Frozen copies of what the API server and the caches hold: everything that one reconcile reads."""
