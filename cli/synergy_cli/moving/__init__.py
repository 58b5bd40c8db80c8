"""`kubectl synergy migrate`: from other schedulers to Tenants and TrainingJobs."""
