"""The style sheet and the script of a page."""
