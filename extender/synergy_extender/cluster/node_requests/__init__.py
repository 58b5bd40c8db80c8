"""Requests for nodes."""
