"""Discretised queues, the Gittins index and learned thresholds (Tiresias)."""
