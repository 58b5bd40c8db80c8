"""Running jobs that stay on their nodes: what a mechanism gave them in the last round."""
