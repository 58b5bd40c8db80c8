"""Trace-driven simulator of a cluster: events, driven by the same `synergy_core.plan` that runs the real one."""
