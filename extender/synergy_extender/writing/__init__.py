"""Changes of jobs' statuses on their way to the API server: in order, guarded, some behind others."""
