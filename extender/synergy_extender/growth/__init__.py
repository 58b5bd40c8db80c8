"""Nodes that are asked for, and what autoscalers are told of those that are there."""
