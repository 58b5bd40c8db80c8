"""What two of the three servers answer: the scheduler verbs, and the API of people and workers."""
