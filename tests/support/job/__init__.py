"""Processes of training jobs and profile runs on this machine, and a lease endpoint for them."""
