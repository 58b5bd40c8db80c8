"""Jobs to simulate: drawn by the papers' rules or read from a trace, with the models that they train."""
