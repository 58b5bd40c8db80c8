"""Discretised queues, the Gittins index and the service distribution that they go by (Tiresias)."""
