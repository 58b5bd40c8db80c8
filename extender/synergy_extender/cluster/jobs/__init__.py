"""The TrainingJobs that are there, from the watch and from answers of the API server."""
