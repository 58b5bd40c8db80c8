"""kind on a machine without Docker: a node image from programs built here, and a Docker daemon of its own."""
