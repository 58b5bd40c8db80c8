"""From a function or a script to the objects of a job. Nothing here speaks to a cluster."""
