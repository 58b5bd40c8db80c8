"""Training runs: start, resize, outcome, end, retries and fencing."""
