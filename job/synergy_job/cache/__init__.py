"""The MinIO cache: a dataset's samples in the node's memory, shared by the workers of a job."""
