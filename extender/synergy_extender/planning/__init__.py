"""The leader's loop: look, plan, decide, write; and what it tells of pools, policies and nodes."""
