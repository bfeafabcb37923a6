"""Annotations of a Service: which ones there are, and what they ask for."""
