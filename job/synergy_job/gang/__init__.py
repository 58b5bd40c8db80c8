"""Agreement among the workers of a job on the step after which they all leave."""
