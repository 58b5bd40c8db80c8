"""The pure planner: who runs, where, with how much CPU and memory. No I/O, no clock, no state between calls."""
