"""The operator: kopf runs the process, and one level-based reconcile per TrainingJob decides the next actions."""
