"""The training loop: the iterator, its rules, signals, and what a worker writes when it ends."""
