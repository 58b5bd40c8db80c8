"""Objects of other controllers and their TrainingJobs."""
