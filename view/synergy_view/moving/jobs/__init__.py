"""Jobs of other schedulers as TrainingJobs."""
