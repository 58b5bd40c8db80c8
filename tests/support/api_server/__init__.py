"""Servers that list and watch like an API server, and the objects that a real one gets."""
