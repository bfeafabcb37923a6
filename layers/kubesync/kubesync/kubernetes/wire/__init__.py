"""Turns the bytes of an API server into values: lines, events, lists."""
