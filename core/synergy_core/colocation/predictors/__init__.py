"""Predictors of what jobs keep of their speed when they share a GPU, how they are fitted, and their file format."""
