"""What is sent to the pods of a job beside the user's function. Needs the standard library only (Python 3.8)."""
