"""Jobs that share a GPU in the simulation: what that really does to them, and what is measured of it."""
