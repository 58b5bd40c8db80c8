"""From objects of the API server to facts of the history."""
