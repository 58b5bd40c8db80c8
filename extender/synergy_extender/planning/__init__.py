"""The leader's loop: look, plan, decide, write; and what it reports about pools, policies and nodes."""
