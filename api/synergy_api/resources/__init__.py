"""The custom resources: one module for each kind."""
