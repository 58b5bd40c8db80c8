"""What the workers of a job send each other in a training step."""
