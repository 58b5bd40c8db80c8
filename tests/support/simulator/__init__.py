"""Small clusters and traces for the simulator's tests."""
