"""The parts of the custom resources: what a spec or a status consists of."""
