"""Profile runs: which points a series measures next, and the matrix that follows from them."""
