"""The public way to simulate: inputs, runs, and what comes of them."""
