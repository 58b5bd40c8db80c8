"""Container images without Docker: the base, Dockerfiles, the project's own images and what is in them."""
