"""What the page and the command line ask, and the answers."""
