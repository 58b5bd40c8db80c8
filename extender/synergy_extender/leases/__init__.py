"""The answers to worker reports, and what follows from a report."""
