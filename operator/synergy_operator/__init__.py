"""The operator: kopf runs it, one level-based reconcile per TrainingJob decides what to do next."""
