"""Runs whose pods another controller makes."""
