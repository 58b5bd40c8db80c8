"""One TrainingJob: its reconcile, validation, phase, conditions, events and end of life."""
