"""Generates the CustomResourceDefinitions and reference pages from the models."""
