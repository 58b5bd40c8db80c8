"""Caches of API objects, and of facts that no object shows."""
